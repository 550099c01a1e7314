"""The execution judge and its evidence."""

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from reasoningbank.corpus import Task
from reasoningbank.errors import EndpointError
from reasoningbank.judge import Answer, Evidence, ExecutionJudge, Gold, GoldStore, Verdict, Window
from reasoningbank.judge.compare import contrast
from reasoningbank.judge.evidence import MAX_TERM_CHARS, evidence_of
from reasoningbank.sparql import EndpointConfig, OxigraphServer, SPARQLClient

PREFIX = "http://example.org/"
N_ITEMS = 120


def turtle() -> str:
    items = (
        f"e:i{i} a e:{'Even' if i % 2 == 0 else 'Odd'} ; e:size {i % 10} ; "
        f'e:label "item {i}"@en ; e:part [ e:weight {i}.5 ] .'
        for i in range(N_ITEMS)
    )
    return "\n".join([f"@prefix e: <{PREFIX}> .", *items])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SPARQLClient]:
    data = tmp_path_factory.mktemp("data") / "items.ttl"
    data.write_text(turtle())
    with OxigraphServer([data], timeout_s=5) as server:
        # Caps as agents see them are far below what the tests ask for.
        config = EndpointConfig(
            "https://example.org/sparql/",
            "Example",
            query_url=server.url,
            prefixes={"e": PREFIX},
            max_rows=10,
        )
        with SPARQLClient(config) as opened:
            yield opened


@pytest.fixture
def judge(client: SPARQLClient, tmp_path: Path) -> ExecutionJudge:
    return ExecutionJudge(client, GoldStore(tmp_path, "store"), timeout_s=4)


def task(gold: str, bag: bool = False, ordered: bool = False) -> Task:
    return Task("t", "?", gold, "https://example.org/sparql/", bag=bag, ordered=ordered)


def one(
    judge: ExecutionJudge,
    gold: str,
    query: str | None,
    bag: bool = False,
    ordered: bool = False,
) -> Verdict:
    return judge.judge(task(gold, bag, ordered), query)


GOLDS = [
    "SELECT ?x { ?x a e:Even }",
    "SELECT ?x ?s { ?x e:size ?s } ORDER BY ?s LIMIT 7",
    "SELECT ?x ?s { ?x e:size ?s } ORDER BY DESC(?s) ?x LIMIT 7 OFFSET 3",
    "SELECT * { ?x e:part ?p . ?p e:weight ?w } LIMIT 11",
    "SELECT ?x { ?x e:size ?s } ORDER BY STR(?s) LIMIT 7",
    "SELECT ?s (COUNT(*) AS ?n) (AVG(?w) AS ?mean) { ?x e:size ?s ; e:part/e:weight ?w } "
    "GROUP BY ?s",
    "SELECT (COUNT(*) AS ?n) { ?x a e:Odd }",
    "ASK { ?x a e:Even }",
    "ASK { ?x a e:Neither }",
    "CONSTRUCT { ?x e:weighs ?w } { ?x e:part/e:weight ?w }",
    "CONSTRUCT { ?x e:has [ e:weight ?w ] } { ?x e:part/e:weight ?w } LIMIT 5",
    "DESCRIBE e:i1",
    "DESCRIBE ?x { ?x e:size 3 } LIMIT 2",
]


@pytest.mark.parametrize("gold", GOLDS)
@pytest.mark.parametrize(("bag", "ordered"), [(False, False), (True, True)])
def test_the_gold_itself_is_right(
    judge: ExecutionJudge, gold: str, bag: bool, ordered: bool
) -> None:
    found = one(judge, gold, gold, bag=bag, ordered=ordered)
    assert (found.strict, found.f1, found.status) == (True, 1.0, "judged"), found.reason
    assert found.n_gold == found.n_predicted > 0
    assert found.counts


def test_another_way_to_ask_is_right(judge: ExecutionJudge) -> None:
    found = one(
        judge,
        "SELECT ?x ?w { ?x e:part/e:weight ?w }",
        "PREFIX ex: <http://example.org/> SELECT (?v AS ?weight) ?item "
        "{ ?p ex:weight ?v . ?item ex:part ?p } ORDER BY ?v",
    )
    assert found.strict
    assert found.n_predicted == N_ITEMS
    assert found.column_mapping == {"x": "item", "w": "weight"}


def test_a_column_too_many(judge: ExecutionJudge) -> None:
    gold = "SELECT ?x { ?x a e:Even }"
    found = one(judge, gold, "SELECT ?x ?l { ?x a e:Even ; e:label ?l }")
    assert (found.strict, found.lenient, found.extra_columns) == (False, True, ("l",))


def codes(found: Verdict) -> list[str]:
    return [finding.code for finding in found.findings]


def test_half_of_the_rows(judge: ExecutionJudge) -> None:
    found = one(judge, "SELECT ?x { ?x e:size ?s }", "SELECT ?x { ?x a e:Even }")
    assert (found.strict, found.precision, found.recall) == (False, 1.0, 0.5)
    assert found.reason == f"{N_ITEMS // 2} of {N_ITEMS} rows missing"
    assert codes(found) == ["rows-missing"]


def test_any_rows_within_a_limit(judge: ExecutionJudge) -> None:
    gold = "SELECT ?x { ?x a e:Even } LIMIT 5"
    assert one(judge, gold, "SELECT ?x { ?x a e:Even } ORDER BY DESC(?x) LIMIT 5").strict
    assert one(judge, gold, "SELECT ?x { ?x a e:Even } LIMIT 5 OFFSET 9").strict
    assert not one(judge, gold, "SELECT ?x { ?x a e:Odd } LIMIT 5").strict
    assert not one(judge, gold, "SELECT ?x { ?x a e:Even } LIMIT 6").strict
    assert not one(judge, gold, "SELECT ?x { ?x a e:Even }").strict


def test_ties_at_the_cut(judge: ExecutionJudge) -> None:
    gold = "SELECT ?x ?s { ?x e:size ?s } ORDER BY DESC(?s) LIMIT 3"
    other = "SELECT ?x ?s { ?x e:size ?s FILTER(?s = 9) } ORDER BY DESC(STR(?x)) LIMIT 3"
    wrong = "SELECT ?x ?s { ?x e:size ?s FILTER(?s = 8) } LIMIT 3"
    for ordered in (False, True):
        assert one(judge, gold, other, ordered=ordered).strict
        assert not one(judge, gold, wrong, ordered=ordered).strict


def test_ties_of_an_expression_that_is_a_column(judge: ExecutionJudge) -> None:
    gold = (
        "SELECT ?s (COUNT(?x) AS ?n) { ?x e:size ?s FILTER(?s > 0) } GROUP BY ?s "
        "ORDER BY DESC(COUNT(?x)) LIMIT 1"
    )
    each = [gold.replace("?s > 0", f"?s = {size}") for size in range(1, 10)]
    right = [one(judge, gold, query).strict for query in each]
    # All sizes are equally frequent.
    assert len(right) == sum(right) == 9


def test_order_where_the_question_asks_for_it(judge: ExecutionJudge) -> None:
    gold = "SELECT ?s (COUNT(*) AS ?n) { ?x e:size ?s } GROUP BY ?s ORDER BY ?s"
    query = gold.replace("ORDER BY ?s", "ORDER BY DESC(?s)")
    assert one(judge, gold, query).strict
    found = one(judge, gold, query, ordered=True)
    assert (found.strict, found.f1) == (False, 1.0)
    assert codes(found) == ["wrong-order"]


def test_duplicates_where_the_task_counts_them(judge: ExecutionJudge) -> None:
    gold = "SELECT ?s { ?x e:size ?s }"
    assert one(judge, gold, "SELECT DISTINCT ?s { ?x e:size ?s }").strict
    found = one(judge, gold, "SELECT DISTINCT ?s { ?x e:size ?s }", bag=True)
    assert (found.strict, found.n_gold, found.n_predicted) == (False, N_ITEMS, 10)


def test_the_wrong_form(judge: ExecutionJudge) -> None:
    found = one(judge, "SELECT ?x { ?x a e:Even }", "ASK { ?x a e:Even }")
    assert (found.strict, found.f1, found.status) == (False, 0.0, "wrong_form")
    assert codes(found) == ["form-mismatch"]
    assert found.counts


def test_construct_and_describe_are_both_graphs(judge: ExecutionJudge) -> None:
    query = "CONSTRUCT { e:i1 ?p ?o . ?o ?q ?r } WHERE { e:i1 ?p ?o OPTIONAL { ?o ?q ?r } }"
    assert one(judge, "DESCRIBE e:i1", query).strict
    found = one(judge, "DESCRIBE e:i1", "CONSTRUCT WHERE { e:i1 ?p ?o }")
    assert (found.strict, found.precision) == (False, 1.0)
    assert 0 < found.recall < 1


@pytest.mark.parametrize("query", [None, "", "  \n"])
def test_no_query(judge: ExecutionJudge, query: str | None) -> None:
    found = one(judge, "SELECT ?x { ?x a e:Even }", query)
    assert (found.strict, found.f1, found.status) == (False, 0.0, "no_query")
    assert found.n_gold == N_ITEMS // 2
    assert found.counts


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?x { ?x a ",
        "I don't know",
        "SELECT ?x { ?x a nope:Even }",
        "DELETE WHERE { ?s ?p ?o }",
        "SELECT ?x { SERVICE <http://example.com/> { ?x ?p ?o } }",
    ],
)
def test_a_query_that_fails_scores_nothing(judge: ExecutionJudge, query: str) -> None:
    found = one(judge, "SELECT ?x { ?x a e:Even }", query)
    assert (found.strict, found.f1, found.status) == (False, 0.0, "query_error")
    assert found.counts
    assert codes(found) == ["query-error"]
    assert found.findings[0].fields["error"]
    assert "\n" not in found.reason


def test_a_query_that_takes_too_long_scores_nothing(client: SPARQLClient, tmp_path: Path) -> None:
    judge = ExecutionJudge(client, GoldStore(tmp_path, "store"), timeout_s=0.3)
    slow = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
    judged = judge.examine(task("ASK { ?x a e:Even }"), slow)
    assert (judged.verdict.strict, judged.verdict.status) == (False, "query_timeout")
    assert codes(judged.verdict) == ["timed-out"]
    assert judged.seconds >= 0.3
    assert judged.verdict.counts
    found = one(judge, slow, "ASK { ?x a e:Even }")
    assert (found.status, codes(found)) == ("gold_defect", ["gold-timed-out"])


def test_a_result_that_the_caps_cut_is_reported(client: SPARQLClient, tmp_path: Path) -> None:
    few = ExecutionJudge(client, GoldStore(tmp_path, "store"), max_rows=60)
    found = one(few, "SELECT ?x { ?x a e:Even }", "SELECT ?x { ?x e:size ?s } ORDER BY ?x")
    assert found.truncated
    assert found.n_predicted == 60
    assert codes(found) == ["rows-missing", "rows-extra", "result-truncated"]
    # What was read is all right, but it is not all.
    found = one(
        few, "SELECT ?x { ?x a e:Even }", "SELECT ?x { { ?x a e:Even } UNION { ?x a e:Odd } }"
    )
    assert (found.strict, found.lenient) == (False, False)


@pytest.mark.parametrize(
    ("gold", "code"),
    [
        ("SELECT ?x { ?x a e:Neither }", "gold-empty"),
        ("CONSTRUCT WHERE { ?x a e:Neither }", "gold-empty"),
        ("SELECT (MAX(?x) AS ?m) { ?x a e:Neither }", "gold-empty"),
        ("SELECT ?x { ?x a ", "gold-error"),
        ("", "gold-missing"),
    ],
)
def test_a_gold_that_says_nothing_is_a_defect(judge: ExecutionJudge, gold: str, code: str) -> None:
    found = one(judge, gold, "SELECT ?x { ?x a e:Neither }")
    assert (found.strict, found.status) == (False, "gold_defect")
    assert codes(found) == [code]
    assert not found.counts


def test_the_gold_stays_as_it_was_first_computed(client: SPARQLClient, tmp_path: Path) -> None:
    golds = GoldStore(tmp_path, "store")
    gold = "SELECT (RAND() AS ?r) { }"
    first = one(ExecutionJudge(client, golds), gold, gold)
    assert not first.strict
    frozen = ExecutionJudge(client, golds).gold(task(gold)).answer.table["r"][0].as_py()
    again = ExecutionJudge(client, golds).gold(task(gold)).answer.table["r"][0].as_py()
    assert frozen == again


def test_an_endpoint_that_is_down_is_not_the_agents_failure(
    judge: ExecutionJudge, tmp_path: Path
) -> None:
    gold = "SELECT ?x { ?x a e:Even }"
    config = EndpointConfig(
        "https://example.org/sparql/",
        query_url="http://127.0.0.1:9/query",
        prefixes={"e": PREFIX},
        retries=0,
    )
    with SPARQLClient(config) as down:
        with pytest.raises(EndpointError):
            one(ExecutionJudge(down, GoldStore(tmp_path / "other", "store")), gold, gold)
        one(judge, gold, gold)
        with pytest.raises(EndpointError):
            one(ExecutionJudge(down, GoldStore(tmp_path, "store")), gold, gold)


def test_verdicts_are_plain_data(judge: ExecutionJudge) -> None:
    found = one(judge, "ASK { ?x a e:Even }", "ASK { ?x a e:Odd }").to_json()
    assert json.loads(json.dumps(found)) == found
    assert (found["strict"], found["reason"]) == (True, "equal")
    assert found["status"] == "judged"
    assert "seconds" not in found


A, B, C, D = (f"<http://e/{name}>" for name in "abcd")


def table(names: str, *rows: Sequence[str | None]) -> Answer:
    return Answer.of_rows(names.split(), rows)


def evidence(
    gold: Answer,
    predicted: Answer,
    window: Window | None = None,
    bag: bool = False,
    ordered: bool = False,
) -> Evidence:
    window = window or Window()
    found = contrast(gold, predicted, bag=bag, ordered=ordered, window=window)
    return evidence_of(Gold(gold, window), predicted, found, bag=bag, ordered=ordered)


def test_rows_that_differ_under_the_best_mapping() -> None:
    gold = table("taxon mass", (A, "1.50"), (B, "2"), (C, "3"))
    mine = table("m t label", ("2.0", B, '"b"'), ("1.5", A, '"a"'), ("9", C, '"c"'))
    found = evidence(gold, mine)
    assert found.mapping == {"taxon": "t", "mass": "m"}
    assert found.missing == ((C, "3"),)
    assert found.surplus == (("9", C, '"c"'),)
    assert (found.gold.n, found.predicted.n, found.predicted.variables) == (
        3,
        3,
        ("m", "t", "label"),
    )


def test_what_was_right_differs_in_nothing() -> None:
    gold = table("x n", (A, "1"), (B, None))
    found = evidence(gold, table("n x", ("1", A), (None, B)))
    assert (found.missing, found.surplus, found.n_missing, found.n_surplus) == ((), (), 0, 0)
    assert found.gold.rows == ((A, "1"), (B, None))


def test_the_right_rows_in_the_wrong_order_are_shown_in_theirs() -> None:
    gold = table("x", (B,), (A,))
    found = evidence(gold, table("x", (A,), (B,)), ordered=True)
    assert (found.gold.rows, found.predicted.rows) == (((B,), (A,)), ((A,), (B,)))
    assert (found.n_missing, found.n_surplus) == (0, 0)


def test_repeated_rows_differ_only_where_they_count() -> None:
    gold, mine = table("x", (A,), (A,), (B,)), table("x", (A,), (B,), (B,))
    assert evidence(gold, mine).n_missing == 0
    found = evidence(gold, mine, bag=True)
    assert (found.missing, found.surplus) == (((A,),), ((B,),))


def test_no_column_is_like_the_golds() -> None:
    found = evidence(table("x", (A,), (B,)), table("x", (C,), (D,)))
    assert (found.missing, found.surplus) == (((A,), (B,)), ((C,), (D,)))
    found = evidence(table("x y", (A, B)), table("x", (A,)))
    assert (found.missing, found.surplus) == (((A, B),), ((A,),))


def test_a_limit_leaves_open_which_rows_are_missing() -> None:
    gold = table("x", *((f"<http://e/{i}>",) for i in range(9, -1, -1)))
    mine = table("x", ("<http://e/4>",), (A,))
    found = evidence(gold, mine, Window(length=4, keys=()))
    assert (found.gold.n, found.n_missing, found.surplus) == (4, 3, ((A,),))
    assert found.missing == tuple((f"<http://e/{i}>",) for i in range(3))
    assert len(found.gold.rows) == 4
    found = evidence(
        gold, table("x", *((f"<http://e/{i}>",) for i in range(6))), Window(length=4, keys=())
    )
    assert (found.n_missing, found.surplus) == (0, (("<http://e/4>",), ("<http://e/5>",)))


def test_of_tied_rows_so_many_as_the_limit_takes() -> None:
    gold = table("x s", (A, "9"), (B, "8"), (C, "8"), (D, "7"))
    window = Window(length=2, keys=("s",))
    found = evidence(gold, table("x s", (B, "8"), (C, "8")), window)
    assert found.missing == ((A, "9"),)
    assert found.surplus == ((C, "8"),)
    assert found.gold.rows == ((A, "9"), (B, "8"))


def test_graphs_and_booleans() -> None:
    gold = Answer.of_triples([(A, B, "1"), (A, B, "2")])
    found = evidence(gold, Answer.of_triples([(A, B, "2"), (A, B, "3")]))
    assert found.gold.variables == ("subject", "predicate", "object")
    assert (found.missing, found.surplus) == (((A, B, "1"),), ((A, B, "3"),))
    found = evidence(Answer.of_boolean(True), Answer.of_boolean(False))
    assert (found.gold.variables, found.gold.rows) == (("boolean",), (("true",),))
    assert (found.missing, found.surplus) == ((("true",),), (("false",),))
    assert evidence(Answer.of_boolean(True), Answer.of_boolean(True)).n_missing == 0


def test_an_answer_of_another_form_differs_in_all() -> None:
    found = evidence(table("x", (A,), (B,)), Answer.of_boolean(True))
    assert (found.missing, found.surplus) == (((A,), (B,)), (("true",),))
    assert found.mapping == {}


def test_without_a_prediction_the_gold_alone_is_shown() -> None:
    gold = Gold(table("x", (B,), (A,), (A,)))
    found = evidence_of(gold)
    assert (found.gold.rows, found.gold.n) == (((A,), (B,)), 3)
    assert (found.predicted.rows, found.missing, found.surplus) == ((), (), ())


def test_evidence_is_bounded() -> None:
    gold = table("x l", *((f"<http://e/{i:03}>", f'"{"y" * 1000}{i}"') for i in range(100)))
    found = evidence(gold, table("x l", *((A, f'"{i}"') for i in range(100))))
    assert (len(found.gold.rows), len(found.predicted.rows)) == (10, 10)
    assert (len(found.missing), len(found.surplus)) == (20, 20)
    assert (found.n_missing, found.n_surplus) == (100, 100)
    text = found.gold.rows[0][1]
    assert text is not None
    assert text.startswith('"yyy')
    assert text.endswith("(1003 characters)")
    assert len(text) < MAX_TERM_CHARS + 30
    assert json.loads(json.dumps(found.to_json()))["n_missing"] == 100


def test_blank_nodes_are_named_by_where_they_stand() -> None:
    gold = table("x n", ("_:q7f", "1"), ("_:a9", "2"))
    other = table("x n", ("_:zz", "2"), ("_:zy", "1"))
    found = evidence(gold, other)
    assert found.gold.rows == found.predicted.rows == (("_:b0", "1"), ("_:b1", "2"))
    assert found.n_missing == 0


def test_what_is_shown_of_a_prediction_does_not_depend_on_the_gold() -> None:
    mine = table("u v", (B, "1"), (A, "1.0"), (B, "1"), ("_:x", None))
    golds = (
        table("x", ("1",)),
        table("x y", ("1", A), ("1", B)),
        table("x y", (A, "1"), (B, "1")),
        Answer.of_boolean(True),
    )
    windows = (Window(), Window(length=1, keys=()))
    shown = {evidence(gold, mine, window).predicted for gold in golds for window in windows}
    assert len(shown) == 1
    assert shown.pop().rows == ((A, "1.0"), (B, "1"), ("_:b0", None))


def shuffled(answer: Answer, seed: int) -> Answer:
    order = list(range(answer.n_rows))
    random.Random(seed).shuffle(order)
    return replace(answer, table=answer.table.take(pa.array(order, type=pa.int64())))


@pytest.mark.parametrize("seed", range(60))
def test_it_counts_as_the_judge_does_in_whatever_order_rows_come(seed: int) -> None:
    draw = random.Random(seed)
    cells = [A, B, C, "1", "2", None]

    def rows(most: int) -> list[list[str | None]]:
        return [[draw.choice(cells) for _ in range(2)] for _ in range(draw.randrange(most))]

    gold, mine = table("x y", *rows(12)), table("u v", *rows(9))
    length = draw.choice([None, None, 3, 5])
    window = Window(length=length, keys=() if length else None)
    bag = draw.random() < 0.5
    compared = contrast(gold, mine, bag=bag, window=window).comparison
    found = evidence(gold, mine, window, bag=bag)
    right = round(compared.f1 * (compared.n_gold + compared.n_predicted) / 2)
    assert found.n_missing == compared.n_gold - right
    assert found.n_surplus == compared.n_predicted - right
    if length is None and found.mapping and not found.n_missing:
        assert len(found.surplus) == found.n_surplus
    # What is missing and what is surplus have no row in common, as multisets under the mapping.
    if len(found.mapping) == 2 and length is None and compared.f1 > 0:
        at = [("u", "v").index(found.mapping[name]) for name in ("x", "y")]
        surplus = Counter(tuple(row[i] for i in at) for row in found.surplus)
        assert not surplus & Counter(found.missing)
    again = evidence(shuffled(gold, seed), shuffled(mine, seed + 1), window, bag=bag)
    # Of several best mappings any may be found; the rows shown of each side are the same.
    assert sorted(map(repr, again.gold.rows)) == sorted(map(repr, found.gold.rows))
    assert (again.n_missing, again.n_surplus) == (found.n_missing, found.n_surplus)
    if again.mapping == found.mapping:
        assert again.to_json() == found.to_json()
