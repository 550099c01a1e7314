// Stands in for the one function that DSPy's runner imports from deno.land, so that the sandbox
// starts on a machine that cannot reach that host. The runner asks for its first line when it
// has loaded Pyodide and before it runs any code: the moment to give up what is left to give up.

// What Deno hands to code that has no permissions at all: files of its own on the host's disk,
// which would carry notes from one trial to the next, and threads that run on between turns.
const OPEN_TO_ALL = ["caches", "localStorage", "sessionStorage", "Worker"];
const PERMISSIONS = ["read", "write", "net", "env", "sys", "run", "ffi", "import"] as const;

async function lockDown(): Promise<void> {
  for (const name of PERMISSIONS) {
    await Deno.permissions.revoke({ name } as Deno.PermissionDescriptor);
  }
  for (const name of OPEN_TO_ALL) delete (globalThis as Record<string, unknown>)[name];
}

export async function* readLines(
  reader: { readable: ReadableStream<Uint8Array> },
): AsyncIterableIterator<string> {
  await lockDown();
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of reader.readable) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
  }
  if (rest) yield rest;
}
