// Stands in for Pyodide in DSPy's runner: starts it from the memory snapshot that the command line
// names, which takes a ninth of the processor time. Without one, or with one of another Pyodide, it
// starts as ever. The import map lets this module alone import the real Pyodide.
import pyodide from "npm:pyodide@0.29.4/pyodide.js";

const file = Deno.args.find((part) => part.startsWith("--snapshot="))?.slice(11);

async function loadPyodide() {
  if (!file) return await pyodide.loadPyodide();
  let python;
  try {
    python = await pyodide.loadPyodide({ _loadSnapshot: await Deno.readFile(file) });
  } catch {
    return await pyodide.loadPyodide();
  }
  // The generator came with the snapshot; two sandboxes would draw the same numbers.
  python.runPython("import random\nrandom.seed()\ndel random");
  return python;
}

export default { loadPyodide };
