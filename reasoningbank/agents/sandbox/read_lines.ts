// Stands in for the one function that DSPy's runner imports from deno.land,
// so that the sandbox starts on a machine that cannot reach that host.
export async function* readLines(
  reader: { readable: ReadableStream<Uint8Array> },
): AsyncIterableIterator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of reader.readable) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
  }
  if (rest) yield rest;
}
