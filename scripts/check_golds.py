"""Check a pack's examples against the rules for questions, groups and golds.

Every gold must run on the pack's data, answer something, take less than the time allowed, and
lose its answer when any one triple pattern is deleted; every question must name the constants
of its gold and none of the schema's own names; groups must be small and topics spread. Of an
instruction that writes only the group and the topics are checked: it has to name what is written.

    python scripts/check_golds.py            # the table, the share, and what breaks a rule
    python scripts/check_golds.py liita      # the same of another pack
    python scripts/check_golds.py --only 012 # one task
    python scripts/check_golds.py --rules    # without running anything

Exits with 1 when a rule is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import pyoxigraph as ox
from rdflib.term import URIRef

from reasoningbank.corpus import (
    Pack,
    Task,
    get_task_stats,
    groups_of,
    load_corpus,
    load_pack,
    open_endpoint,
)
from reasoningbank.corpus.features import query_template
from reasoningbank.corpus.questions import schema_names, unmentioned
from reasoningbank.errors import QueryError, ReasoningBankError
from reasoningbank.schema import local_name
from reasoningbank.sparql import prepare
from reasoningbank.sparql.server import open_data
from reasoningbank.sparql.tree import read_query

SECONDS = 5.0
#: A deletion may turn a join into a cross product; after this long it counts as undecided.
DELETION_SECONDS = 20.0
MOST_ROWS = 300
MOST_IN_GROUP = 5
GROUPS_PER_TOPIC = 3
SHARE = 0.9

#: The topics of UniProt's schema, as keywords of its examples name them; of other packs every
#: keyword is a topic.
TOPICS = {
    "uniprot": (
        "cross-reference", "disease", "domain", "enzyme", "evidence", "existence", "feature",
        "function", "gene", "gene ontology", "keyword", "mass", "name", "organism", "sequence",
        "subcellular location", "taxonomy", "variant",
    ),
}  # fmt: skip

Answer = bool | frozenset[tuple[str, ...]]


@dataclass(frozen=True)
class Outcome:
    """How one query ended: what it answered, or why it did not."""

    rows: int
    seconds: float
    changed: bool = False
    error: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and what breaks a rule; return the exit status."""
    args = _arguments(argv)
    pack = load_pack(args.pack)
    corpus = load_corpus(pack)
    breaches = [f"{f.code}: {f}" for f in corpus.findings]
    tasks = [t for t in corpus.tasks if args.only in t.id]
    if not args.only:
        breaches += list(_spread(tasks, TOPICS.get(corpus.name)))
    store = _store(pack)
    for language in pack.languages:
        asked = load_corpus(pack, language=language).tasks
        breaches += _questions([t for t in asked if args.only in t.id], language, pack, store)
    if not args.rules:
        asking = [t for t in tasks if t.form != "UPDATE"]
        with _services(pack, asking) as aliases:
            breaches += _golds(asking, store, aliases, all_tasks=not args.only)
    if not args.only:
        _print_stats(tasks)
    for breach in breaches:
        print("BREACH", breach)
    print(f"{len(tasks)} tasks, {len(breaches)} breaches")
    return 1 if breaches else 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("pack", nargs="?", default="uniprot", help="name or folder of a pack")
    parser.add_argument("--only", default="", help="check only tasks with this in their id")
    parser.add_argument("--rules", action="store_true", help="check questions and groups only")
    return parser.parse_args(argv)


# -- groups and questions ------------------------------------------------------------------


def _spread(tasks: Sequence[Task], topics: Sequence[str] | None) -> Iterator[str]:
    """Yield what is wrong with groups and topics; without topics every keyword is one."""
    groups_of_topic: dict[str, set[str]] = defaultdict(set)
    for name, group in groups_of(tasks).items():
        if len(group) > MOST_IN_GROUP:
            yield f"group {name} has {len(group)} tasks, more than {MOST_IN_GROUP}"
        if name.startswith("template-"):
            yield f"{group[0].id} names no group"
        for task in group:
            # What is kept for one split needs no groups for the others.
            for keyword in () if task.split else task.keywords:
                groups_of_topic[keyword].add(name)
    for topic in sorted(groups_of_topic) if topics is None else topics:
        if len(groups_of_topic[topic]) < GROUPS_PER_TOPIC:
            yield f"topic {topic} is in {len(groups_of_topic[topic])} groups only"
    groups_of_template: dict[str, set[str]] = defaultdict(set)
    for task in tasks:
        groups_of_template[query_template(task.expected_sparql)].add(task.group)
    for names in groups_of_template.values():
        if len(names) > 1:
            yield f"one template is in several groups: {', '.join(sorted(names))}"


def _questions(tasks: Sequence[Task], language: str, pack: Pack, store: ox.Store) -> Iterator[str]:
    """Yield what is wrong with the wording of questions in a language."""
    schema = _schema_iris(pack)
    found_names = schema_names(pack)

    def names(iri: URIRef) -> list[str]:
        found = store.quads_for_pattern(ox.NamedNode(str(iri)), None, None)
        values = (q.object.value for q in found if isinstance(q.object, ox.Literal))
        return [*found_names.get(iri, ()), *values]

    questions = Counter(t.query for t in tasks)
    yield from (f"asked {n} times: {q}" for q, n in questions.items() if n > 1)
    for task in tasks:
        if task.language != language:
            yield f"{task.id}: there is no question in {language!r}"
            continue
        if task.form == "UPDATE":
            continue
        try:
            for constant in unmentioned(task.query, task.expected_sparql, names, language=language):
                yield f"{task.id}: the question does not mention {constant}"
        except QueryError as error:
            yield f"{task.id}: {error}"
        for name in schema_names_in(task.query, schema):
            yield f"{task.id}: the question holds the schema's name {name}"


def schema_names_in(question: str, schema_iris: Iterable[str]) -> list[str]:
    """Return the names of classes and properties that a question contains."""
    local = {local_name(iri) for iri in schema_iris}
    telling = {name for name in local if re.search(r"[a-z][A-Z]|_", name)}
    words = re.findall(r"[\w-]+(?::[\w.-]+)?", question)
    return [w for w in words if w in telling or w.partition(":")[2] in local - {""}]


def _schema_iris(pack: Pack) -> list[str]:
    if pack.schema is None:
        return []
    with open_data(pack.schema) as (media_type, stream):
        quads = ox.parse(stream, format=ox.RdfFormat.from_media_type(media_type))
        return sorted({q.subject.value for q in quads if isinstance(q.subject, ox.NamedNode)})


# -- golds ---------------------------------------------------------------------------------


def _store(pack: Pack) -> ox.Store:
    store = ox.Store()
    for path in pack.data:
        with open_data(path) as (media_type, stream):
            store.bulk_load(stream, format=ox.RdfFormat.from_media_type(media_type))
    return store


@contextlib.contextmanager
def _services(pack: Pack, tasks: Sequence[Task]) -> Iterator[Mapping[str, str]]:
    """Serve the endpoints that golds federate with; yields real addresses by public ones."""
    if not any("SERVICE" in task.expected_sparql for task in tasks):
        yield {}
        return
    with open_endpoint(pack) as config:
        yield config.aliases


def _golds(
    tasks: Sequence[Task], store: ox.Store, aliases: Mapping[str, str], *, all_tasks: bool
) -> list[str]:
    """Run every gold and its deletions, print a line each, and return what is wrong."""
    breaches = []
    weak = []
    for task in tasks:
        try:
            gold = prepare(task.expected_sparql, aliases=aliases, services=()).text
        except QueryError as error:
            breaches.append(f"{task.id}: {error}")
            continue
        answer, outcome = _run_gold(gold, store)
        if outcome.error or answer is None:
            breaches.append(f"{task.id}: the gold fails: {outcome.error}")
            continue
        if not outcome.rows:
            breaches.append(f"{task.id}: the gold answers nothing")
        if outcome.rows > MOST_ROWS:
            breaches.append(f"{task.id}: the gold answers {outcome.rows} rows")
        if outcome.seconds > SECONDS:
            breaches.append(f"{task.id}: the gold takes {outcome.seconds:.1f} s")
        try:
            unchanged = _unchanged(gold, store, answer)
        except QueryError as error:
            breaches.append(f"{task.id}: {error}")
            continue
        if unchanged:
            weak.append(task.id)
        shown = f"{answer}" if isinstance(answer, bool) else f"{outcome.rows}"
        mark = "; ".join(unchanged) and f"   keeps its answer without: {'; '.join(unchanged)}"
        print(
            f"{task.id:<52} {task.form:<9} {task.complexity:<8} {shown:>6} "
            f"{outcome.seconds:6.2f} s{mark}"
        )
    share = 1 - len(weak) / max(1, len(tasks))
    print(f"every pattern counts in {len(tasks) - len(weak)} of {len(tasks)} tasks ({share:.1%})")
    if all_tasks and share < SHARE:
        breaches.append(f"every pattern counts in {share:.1%} of the tasks, less than {SHARE:.0%}")
    return breaches


def _run_gold(gold: str, store: ox.Store) -> tuple[Answer | None, Outcome]:
    started = time.perf_counter()
    try:
        rows = _rows(gold, store)
        answer: Answer = rows if isinstance(rows, bool) else frozenset(listed := list(rows))
    except (SyntaxError, ValueError, OSError, RuntimeError) as error:
        return None, Outcome(0, 0.0, error=str(error))
    count = 1 if isinstance(answer, bool) else len(listed)
    return answer, Outcome(count, time.perf_counter() - started)


def _rows(query: str, store: ox.Store) -> bool | Iterator[tuple[str, ...]]:
    result = store.query(query, use_default_graph_as_union=True)
    if isinstance(result, ox.QueryBoolean):
        return bool(result)
    if isinstance(result, ox.QueryTriples):
        return ((str(t.subject), str(t.predicate), str(t.object)) for t in result)
    width = range(len(result.variables))
    return (tuple(str(row[i]) for i in width) for row in result)


def _unchanged(gold: str, store: ox.Store, answer: Answer) -> list[str]:
    """Return the patterns without which the answer is the same, or is not known in time."""
    found = []
    for index, pattern in enumerate(read_query(gold).triple_patterns()):
        outcome = _in_time(without_pattern(gold, index), store, answer)
        if outcome.error or not outcome.changed:
            found.append(f"{pattern}{' (' + outcome.error + ')' if outcome.error else ''}")
    return found


def without_pattern(query: str, index: int) -> str:
    """Return the query without the pattern at `index` of its `triple_patterns`."""
    left = index
    for clause in read_query(query).statements():
        if 0 <= left < len(clause.patterns):
            rest = [pattern for i, pattern in enumerate(clause.patterns) if i != left]
            text = " ".join(f"{pattern} ." for pattern in rest)
            return query[: clause.start] + text + query[clause.end :]
        left -= len(clause.patterns)
    raise QueryError(f"the query has no triple pattern {index}")


def _in_time(query: str, store: ox.Store, answer: Answer) -> Outcome:
    """Run a query in a fork, which can be killed: the engine itself has no time limit."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_compare, args=(query, store, answer, there), daemon=True)
    started = time.perf_counter()
    child.start()
    there.close()
    try:
        if not here.poll(DELETION_SECONDS):
            return Outcome(0, DELETION_SECONDS, error="undecided")
        changed, error = here.recv()
        return Outcome(0, time.perf_counter() - started, changed, error)
    except EOFError:
        return Outcome(0, time.perf_counter() - started, error="the engine died")
    finally:
        child.kill()
        child.join()


def _compare(query: str, store: ox.Store, answer: Answer, out: Connection) -> None:
    try:
        rows = _rows(query, store)
        if isinstance(rows, bool) or isinstance(answer, bool):
            out.send((rows is not answer, ""))
            return
        seen = set()
        for row in rows:
            if row not in answer:
                out.send((True, ""))
                return
            seen.add(row)
        out.send((len(seen) != len(answer), ""))
    except (SyntaxError, ValueError, OSError, RuntimeError) as error:
        out.send((False, str(error)))


def _print_stats(tasks: Sequence[Task]) -> None:
    stats = get_task_stats(tasks, top=40)
    for key in ("by_form", "by_complexity", "by_feature", "top_keywords"):
        table = stats[key]
        print(f"{key}: " + ", ".join(f"{name} {n}" for name, n in table.items()))
    print(f"groups: {stats['groups']}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ReasoningBankError as error:
        sys.exit(str(error))
