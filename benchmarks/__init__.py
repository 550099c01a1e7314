"""Speed and memory beside what one would write instead, measured side by side in one run.

`python -m benchmarks` prints the table; absolute numbers belong to the machine, the ratios are
what counts. `measure` times and runs jobs in fresh processes, `results` is about large results
(`replay` serves them without an engine), `slices` about looking into them, `corpus` about loading
tasks, `sandbox` about tool calls from the agent's code, `discovery` about unknown endpoints,
`retrieval` about finding items in a memory bank. `overhead` is about what a trial takes beside a
bare loop (`bare`), `parallel` about many trials at once; `model` and `turns` are the model that
they replay, `trials` runs them. `long_runs` is about the records of a run of many trials, whose
number it takes (`python -m benchmarks.long_runs 100000`); `bank` is about a memory bank of many
items (`python -m benchmarks.bank 1000000`). `retrieval_quality` is about what memory finds, not how
fast: its numbers are in `docs/retrieval.md`.
"""
