// Starts Pyodide, imports what DSPy's runner imports, and writes a snapshot of its memory to stdout.
import pyodide from "npm:pyodide@0.29.4/pyodide.js";

const python = await pyodide.loadPyodide({ _makeSnapshot: true });
python.runPython("import functools, io, json, random, sys\nfrom pyodide.ffi import JsProxy, run_sync");
python.runPython("del functools, io, json, random, sys, JsProxy, run_sync");
let rest = python.makeMemorySnapshot();
while (rest.length) rest = rest.subarray(await Deno.stdout.write(rest));
