"""The retrieval-augmented pipeline as an agent: few calls, always in the same order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reasoningbank.agents.budget import used_up
from reasoningbank.agents.calling import asking
from reasoningbank.agents.confidence import Confidence, confidence_score, load_calibration
from reasoningbank.agents.protocol import Attempt, AttemptStatus, Episode, conclude
from reasoningbank.agents.recording import RecordedClient
from reasoningbank.agents.shown_examples import pack_of, shown_examples
from reasoningbank.corpus import Pack, Task
from reasoningbank.errors import BudgetError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.nl2sparql import LEVELS, NL2SPARQL, Translation
from reasoningbank.retrieval import DEFAULT_EMBEDDER, DEFAULT_INDEX
from reasoningbank.schema import Schema, explainer

__all__ = ["RAGAgent", "translation_confidence"]

#: Steps of the pipeline after which a query was made that was not there before.
_MAKES = ("exchange", "adapt", "synthesise", "fix")


class RAGAgent:
    """Detect → retrieve → adapt the best example or write → validate → fix with the error.

    The work is `nl2sparql.NL2SPARQL`'s; here it gets a budget and a record. A turn is a query
    that is made and validated. Nothing of a hidden task's group is retrieved.

    Args:
        top_k: Examples shown; 0 for none.
        adapt: Whether an example that is nearly the question is changed instead.
        max_fixes: Rounds in which a query with problems is written anew.
        retrieval: How examples are found: one of `shown_examples.RETRIEVALS`.
        levels: Levels of validation: of ``syntax``, ``semantic`` and ``endpoint``, as names or as
            one text with commas; empty for none.
        diagnose: Whether a query that fails or gives nothing is probed for the reason.
        embedding: The embedding model, as `retrieval.open_embedder` names them.
        index: What compares vectors, one of `retrieval.INDEXES`.

    Raises:
        UsageError: There is no such level.
    """

    name = "rag"
    uses_lm = True
    sees_gold = False

    def __init__(
        self,
        top_k: int = 3,
        adapt: bool = True,
        max_fixes: int = 2,
        retrieval: str = "hybrid",
        levels: Sequence[str] | str = LEVELS,
        diagnose: bool = True,
        embedding: str = DEFAULT_EMBEDDER,
        index: str = DEFAULT_INDEX,
    ) -> None:
        if isinstance(levels, str):
            # An experiment file's options are words and numbers.
            levels = [level.strip() for level in levels.split(",") if level.strip()]
        for level in levels:
            if level not in LEVELS:
                hint = f"choose from {', '.join(LEVELS)}"
                raise UsageError(f"unknown level {level!r}", where="agent rag", hint=hint)
        self._top_k = top_k
        self._adapt = adapt
        self._max_fixes = max_fixes
        self._retrieval = retrieval
        self._diagnose = diagnose
        self._embedding = embedding
        self._index = index
        self._levels = tuple(level for level in LEVELS if level in levels)

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with the first query that validation has nothing against, or the best one.

        Raises:
            UsageError: The episode has no pack, or there is no such embedding model or index.
            SetupError: The package of the model or of the index is missing.
            EndpointError: The endpoint fails.
            ModelError: The model cannot be reached.
        """
        pack = pack_of(episode, self.name)
        shown = shown_examples(
            pack,
            episode.hidden,
            retrieval=self._retrieval,
            embedding=self._embedding,
            index=self._index,
        )
        fixes = min(self._max_fixes, episode.budget.iterations - 1)
        watch = _Watch(episode, fixes)
        status: AttemptStatus = "submitted"
        findings: list[Finding] = []
        sparql: str | None = None
        client = RecordedClient(episode)
        try:
            with asking(episode), client:
                found = NL2SPARQL(
                    pack,
                    episode.lm,
                    endpoint=client,
                    retriever=shown.retriever,
                    detector=shown.detector,
                    top_k=self._top_k,
                    adapt=self._adapt,
                    max_fixes=fixes,
                    levels=self._levels,
                    timeout=episode.endpoint.timeout_s,
                    explain=explainer(client, Schema.of(client.config, pack.schema))
                    if self._diagnose
                    else None,
                ).translate(
                    task.query,
                    without_groups=shown.without_groups,
                    without_ids=shown.without_ids,
                    advice=episode.context,
                    on_step=watch,
                )
            sparql = found.sparql
            trust = translation_confidence(found, pack, getattr(episode.lm, "model", ""))
            episode.recorder.add("step", {"step": "output", **asdict(trust)})
            if not found.is_valid:
                status = "fallback"
                findings = [Finding("stopped", found.stopped)] if found.stopped else []
                findings += (Finding(p.code, p.what, hint=p.hint) for p in found.problems)
            spent = watch.spent or client.exhausted
        except BudgetError as error:
            spent = watch.spent or error
            sparql = watch.best
        if spent is not None:
            return conclude(episode, sparql, "exhausted", [spent])
        return conclude(episode, sparql, status, findings)


def translation_confidence(found: Translation, pack: Pack, model: str = "") -> Confidence:
    """Return how far to trust a translation, and why.

    The score is the graph's: validity, likeness of the nearest example, number of the query.

    Args:
        found: What the pipeline made of a question.
        pack: The pack, which may have a table of what scores are worth.
        model: Who was asked; a table of another model is not used.

    Raises:
        UsageError: The pack's table cannot be read.
    """
    table = load_calibration(pack, "rag", model)
    needs = ", ".join(one.pattern for one in found.patterns) or "no known pattern"
    best = found.best
    if best is None:
        why = f"It needs {needs}. No query came out: {found.stopped}."
        return Confidence(0.0, 0.0, table is not None, why)
    likeness = max((one.score for one in found.retrieved), default=0.0)
    number = found.candidates.index(best) + 1
    score = confidence_score(valid=found.is_valid, likeness=likeness, attempts=number)
    near = ", ".join(one.example.id for one in found.retrieved)
    like = f" after the examples {near}" if near else ""
    came = ""
    if found.rows is not None:
        came = f"It gives {found.rows} {'row' if found.rows == 1 else 'rows'}. "
    against = "; ".join(map(str, found.problems)) or "nothing that was looked for"
    why = (
        f"It needs {needs}. {best.how.capitalize()}{like}; queries: {len(found.candidates)}. "
        f"{came}Against it: {against}."
    )
    return Confidence.of(score, table, why)


@dataclass
class _Watch:
    """Follows the pipeline: records its steps, and asks the meter before each round.

    Attributes:
        spent: The error of the budget that was used up, if one was.
        best: The query with the fewest problems so far, kept where a budget ends the pipeline.
    """

    episode: Episode
    max_fixes: int
    spent: BudgetError | None = None
    best: str | None = None
    _made: str = ""
    _how: str = ""
    _fixes: int = 0
    _least: tuple[bool, int] | None = None

    def __call__(self, name: str, detail: Mapping[str, Any]) -> None:
        self.episode.recorder.add("step", {"step": name, **detail})
        self._fixes += name == "fix"
        if name in _MAKES and detail.get("sparql") and "stopped" not in detail:
            self._made, self._how = detail["sparql"], name
            if self.best is None:
                self.best = self._made
        # A query that came again is asked for once more.
        again = detail.get("repeated") and not detail["stopped"] and self._fixes < self.max_fixes
        if name == "constrain" or again:
            self._turn()
        elif name == "adapt" and not detail["sparql"]:
            # Another call in the same turn.
            self._within(self.episode.meter.check)
        elif name == "validate":
            problems = len(detail["problems"])
            # A query with rows is worth more than one without, whatever is said of both.
            standing = (not detail["rows"], problems)
            if self._least is None or standing < self._least:
                self._least, self.best = standing, self._made
            another = self._how == "exchange" or self._fixes < self.max_fixes
            if problems and another:
                self._turn()

    def _turn(self) -> None:
        self._within(self._next)

    def _next(self) -> None:
        meter, turns = self.episode.meter, self.episode.budget.iterations
        if meter.usage().iterations >= turns:
            # A query that was exchanged is a turn that no round of fixing knows of.
            raise used_up("iterations", turns)
        meter.turn()

    def _within(self, step: Callable[[], None]) -> None:
        try:
            step()
        except BudgetError as spent:
            self.spent = spent
            raise
