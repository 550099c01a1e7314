"""The Deno/Pyodide sandbox in which the RLM agent's Python runs."""
