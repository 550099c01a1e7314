"""The three levels: what is found, what its hint says, and that right queries pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasoningbank.corpus import Pack, load_corpus, load_pack, split_tasks
from reasoningbank.errors import EndpointError
from reasoningbank.nl2sparql import (
    load_examples,
    validate_endpoint,
    validate_semantic,
    validate_syntax,
)
from reasoningbank.nl2sparql.detection import detector_of
from reasoningbank.nl2sparql.validation import validate
from reasoningbank.sparql import EndpointConfig, SPARQLClient

COMPLIT = "https://klab.ilc.cnr.it/graphdb-compl-it/"
SICILIAN = "http://liita.it/data/id/DialettoSiciliano/lemma/LemmaBank"
PARMIGIANO = "http://liita.it/data/id/DialettoParmigiano/lemma/LemmaBank"
SOIL = "https://soil.example/sparql"
COUNTS = "{ SELECT (COUNT(?t) AS ?n) { ?t a w:Tree } } { SELECT (COUNT(?p) AS ?m) { ?p a w:Plot } }"


def codes(query: str, pack: Pack | str, *patterns: str) -> list[str]:
    found = validate_semantic(query, pack, patterns)
    assert all(problem.hint and "\n" not in str(problem) for problem in found.problems)
    return [problem.code for problem in found.problems]


# -- syntax -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT ?s WHERE { ?s ?p ?o", "add the '}'"),
        ("SELECT ?s WHERE { ?s nope:x ?o }", "'nope:' is not declared"),
        ("SELECT COUNT(?s) WHERE { ?s ?p ?o }", "(COUNT(...) AS ?name)"),
        ("INSERT DATA { <urn:a> <urn:b> 1 }", "is an update"),
        ("Here you are", "begin the query with SELECT"),
        ("", "empty"),
    ],
)
def test_syntax_problems_say_where_and_how_to_fix_them(query: str, said: str, woods: Pack) -> None:
    found = validate_syntax(query, woods)
    assert not found
    assert said in str(found.problems[0])
    assert found.problems[0].fields["level"] == "syntax"


def test_pack_prefixes_need_no_declaration(woods: Pack) -> None:
    query = "ASK { ?t w:height ?h }"
    assert validate_syntax(query, woods).ok
    assert not validate_syntax(query, None).ok


def test_what_only_oxigraph_reads_is_noted(woods: Pack) -> None:
    found = validate_syntax("ASK { << ?s ?p ?o >> ?q ?r }", woods)
    assert found.ok
    assert "SPARQL 1.1" in found.notes[0]
    assert validate_semantic("ASK { << ?s ?p ?o >> ?q ?r }", woods).notes


def test_what_rdflib_reads_and_oxigraph_rejects_is_a_problem(woods: Pack) -> None:
    # A blank node label in two graph patterns is against the grammar's notes; rdflib lets it pass.
    found = validate_syntax("SELECT * { { _:a ?p ?o } UNION { _:a ?q ?r } }", woods)
    assert [problem.code for problem in found.problems] == ["rejected"]


def test_a_selected_name_that_the_pattern_binds_is_reported(woods: Pack) -> None:
    query = "SELECT ?t (rdfs:label AS ?l) { ?t a w:Tree ; rdfs:label ?l }"
    (problem,) = validate_syntax(query, woods).problems
    assert "binds already" in problem.what
    assert problem.hint.startswith("select the variable as it is")


# -- semantic -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["liita", "liita-test", "uniprot"])
def test_all_golds_are_sound(name: str) -> None:
    pack = load_pack(name)
    unsound = {
        example.id: [str(problem) for problem in found.problems] or found.notes
        for example in load_examples(pack)
        if not (found := validate_semantic(example.sparql, pack, example.patterns)).ok
        or found.notes
    }
    assert unsound == {}


def test_what_nothing_joins_is_reported_with_what_would_join_it(woods: Pack) -> None:
    (problem,) = validate_semantic("SELECT ?h { ?p a w:Plot . ?t w:height ?h }", woods).problems
    assert problem.fields["parts"] == [["?p"], ["?t", "?h"]]
    assert problem.fields["bridges"] == ["?p w:grows ?t"]


def test_a_name_of_the_question_that_the_query_lacks(woods: Pack) -> None:
    query = 'SELECT ?h { ?t rdfs:label "oak" ; w:height ?h }'
    asked = 'How high are "oak" and "elm"?'
    (problem,) = validate_semantic(query, woods, question=asked).problems
    assert problem.code == "not-named"
    assert 'VALUES ?name { "oak" "elm" }' in problem.hint
    assert validate_semantic(query, woods, question='How high is "Oak"?').ok
    assert validate_semantic(query, woods, question="How high is the oak?").ok


@pytest.mark.parametrize(
    ("question", "query", "missing"),
    [
        ("Which words are from the 20th century?", "ASK { FILTER(?y >= 1900) }", ""),
        ("Which proteins bind CO2 or vitamin B12?", "ASK { ?p w:binds w:16526 }", ""),
        ("Show the top10 or top100 of the 1st cluster", "SELECT * {} LIMIT 10", ""),
        ("Which are longer than 1,000aa?", "ASK { FILTER(?l > 1000) }", ""),
        ('Parole che finiscono in "-mente"?', 'ASK { FILTER(REGEX(?l, "mente$")) }', ""),
        ('L\'iperonimo di "Città"?', 'ASK { ?w rdfs:label "citta" }', ""),
        ('What begins with "(x"?', r'ASK { FILTER(REGEX(?l, "^\\(x")) }', ""),
        ("Which organism is P05067 of?", "ASK { w:P05067 ?p ?o }", ""),
        ("Which organism is P05067 of?", "ASK { w:P05068 ?p ?o }", "P05067"),
        ("What does ENSG00000139618 code?", "ASK { ?g ?p ?o }", "ENSG00000139618"),
        ('Parole che finiscono in "-mente"?', 'ASK { FILTER(REGEX(?l, "zione$")) }', '"-mente"'),
    ],
)
def test_what_of_a_question_is_a_name(question: str, query: str, missing: str, woods: Pack) -> None:
    found = validate_semantic(query, woods, question=question).problems
    listed = [one.fields["missing"] for one in found if one.code == "not-named"]
    assert listed == ([[missing]] if missing else [])


def test_the_shapes_of_a_pack_are_names() -> None:
    found = validate_semantic("ASK { ?p a up:Protein }", "uniprot", question="Is O1ABC2 one?")
    assert found.problems[0].fields["missing"] == ["O1ABC2"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?t { ?t w:height ?h }", []),
        ("SELECT ?t { ?t w:hight ?h }", ["unknown-property"]),
        ('SELECT ?t { ?t rdfs:label "w:hight" } # w:hight', []),
        ("SELECT ?t { ?t a w:Tre }", ["unknown-class"]),
        ("SELECT ?t { GRAPH w:trees { ?t w:height ?h } }", []),
        ("SELECT ?t { GRAPH w:growth { ?t w:height ?h } }", ["wrong-graph"]),
        ("SELECT ?t FROM w:growth { ?t w:height ?h }", ["wrong-graph"]),
        ("SELECT ?t { GRAPH w:growths { ?t w:height ?h } }", ["unknown-graph"]),
        ("SELECT ?t { GRAPH ?g { ?t w:height ?h } }", []),
        ("SELECT ?t { ?t w:acidity ?a }", ["missing-service"]),
        (f"SELECT ?t {{ SERVICE <{SOIL}> {{ ?t w:acidity ?a }} }}", []),
        (f"SELECT ?t {{ SERVICE <{SOIL}> {{ ?t w:height ?a }} }}", ["wrong-service"]),
        ("SELECT ?t { SERVICE <https://unknown.example/> { ?t w:hight ?a } }", []),
        ("SELECT ?t { ?t w:height ?h ; w:near ?o }", ["one-variable-two-entries"]),
        ("SELECT ?t { { ?t w:height ?h } UNION { ?t w:near ?o } }", []),
        ("SELECT ?t { ?t w:height|w:near ?h }", []),
        ("SELECT ?t { ?t w:height ?h . { SELECT ?o { ?t w:near ?o } } }", ["disconnected"]),
        (
            "SELECT ?t { ?t w:height ?h . { SELECT ?t { ?t w:near ?o } } }",
            ["one-variable-two-entries"],
        ),
        ("SELECT ?t { ?t w:grows ?p . ?p a w:Plot }", ["reversed-direction"]),
        ("SELECT ?t { ?p a w:Plot ; w:height ?h }", ["wrong-subject"]),
        ("SELECT ?t { ?p w:grows ?t . ?t w:height ?h }", []),
        ("SELECT ?t { ?p w:grows/w:height ?h }", []),
        ("SELECT ?t { ?t w:grows/w:height ?h . ?t w:height ?g }", ["wrong-subject"]),
        ("SELECT ?t { ?h ^w:height ?t . ?t a w:Tree }", []),
        ("SELECT ?t { ?t w:near w:oak }", []),
        ("SELECT ?t { ?t w:near w:elm }", ["unknown-value"]),
        ('SELECT ?t { ?t w:near "oak" }', ["unknown-value"]),
        ("SELECT ?t { FILTER NOT EXISTS { ?t w:hight ?h } }", ["unknown-property"]),
        ("SELECT ?t { OPTIONAL { ?t w:hight ?h } }", ["unknown-property"]),
        ("SELECT ?t { ?t ?p ?o . ?s void:triples ?n }", ["disconnected"]),
        ("SELECT ?t { ?t w:height ?h . ?s w:height ?g }", ["disconnected"]),
        ("SELECT ?t { ?t w:height ?h . ?s w:height ?h }", []),
        ("SELECT ?t { ?t w:height ?h . ?s w:height ?g FILTER(?g > ?h) }", []),
        ("SELECT ?t { ?t w:height ?h . ?s w:height ?g BIND(?g - ?h AS ?d) }", []),
        ("SELECT ?t { ?t w:height ?h . ?s w:height ?g VALUES (?h ?g) { (1 2) } }", []),
        ("SELECT ?t { { ?t w:height ?h } UNION { ?s w:height ?g } }", []),
        ('SELECT ?t { ?t rdfs:label "oak" . ?s rdfs:label "oak"@en }', []),
        ("SELECT ?t { ?t w:height ?h . FILTER NOT EXISTS { ?s w:height ?g } }", ["disconnected"]),
        ("CONSTRUCT { ?t w:hight ?h } WHERE { ?t w:height ?h }", []),
        ("SELECT ?t { ?t a w:Tree MINUS { ?t a w:Plot } }", []),
        ("SELECT ?t { ?t w:height ?h FILTER NOT EXISTS { ?t a w:Plot ; w:grows ?o } }", []),
        ("SELECT ?t { ?t a w:Tree FILTER(!EXISTS { ?t a w:Plot }) }", []),
        (f"SELECT ?t {{ SERVICE <{SOIL}> {{ ?t a w:Tree MINUS {{ ?t a w:Plot }} }} }}", []),
        ("SELECT ?t { ?t a w:Tree MINUS { ?t w:grows ?p } }", ["reversed-direction"]),
        ("SELECT ?t { ?t a w:Tree MINUS { ?t w:near ?o . ?o a w:Plot } }", ["wrong-object"]),
        (f"SELECT * {{ {COUNTS} }}", []),
        (f"SELECT * {{ SERVICE <{SOIL}> {{ {COUNTS} }} }}", []),
        (f"SELECT * {{ {COUNTS.replace('(COUNT(?p) AS ?m)', '?p')} }}", ["disconnected"]),
        (f"SELECT * {{ {COUNTS} }}".replace("w:Plot }", "w:Plot } GROUP BY ?p"), ["disconnected"]),
        (
            "SELECT * { { SELECT (COUNT(*) AS ?n) { ?t a w:Tree . ?p a w:Plot } } }",
            ["disconnected"],
        ),
        ("SELECT ?t { { SELECT DISTINCT ?t { ?t w:hight ?h } LIMIT 3 } }", ["unknown-property"]),
        ("SELECT ?t { ?t w:height", []),
    ],
)
def test_semantic_problems(woods: Pack, query: str, expected: list[str]) -> None:
    assert codes(query, woods) == expected


def test_the_end_that_a_question_names(woods: Pack) -> None:
    right = 'SELECT ?o { ?t rdfs:label "pine" ; w:near ?o }'
    wrong = 'SELECT ?o { ?t rdfs:label ?n . ?o w:near ?t FILTER(STR(?n) = "pine") }'
    assert codes(right, woods, "NEIGHBOUR") == []
    assert codes(wrong, woods, "NEIGHBOUR") == ["reversed-direction"]
    assert codes(wrong, woods) == []
    for other in (
        'SELECT ?o { VALUES ?n { "pine" } ?t rdfs:label ?n . ?o w:near ?t }',
        'SELECT ?o { BIND("pine" AS ?n) ?t rdfs:label ?n . ?o w:near ?t }',
        "SELECT ?o { ?o w:near w:pine }",
        'SELECT ?o { ?t rdfs:label ?n . ?o w:near ?t FILTER(REGEX(STR(?n), "^pine$", "i")) }',
    ):
        assert codes(other, woods, "NEIGHBOUR") == ["reversed-direction"], other
    begins = 'SELECT ?o { ?t rdfs:label ?n . ?o w:near ?t FILTER(REGEX(?n, "^p")) }'
    assert codes(begins, woods, "NEIGHBOUR") == []
    both = 'SELECT ?o { ?t rdfs:label "pine" . ?o rdfs:label "oak" ; w:near ?t }'
    assert codes(both, woods, "NEIGHBOUR") == []


def test_hints_name_what_is_meant(woods: Pack) -> None:
    (problem,) = validate_semantic("ASK { ?t w:hight ?h }", woods).problems
    assert problem.fields["replacements"] == ["w:height"]
    (problem,) = validate_semantic("ASK { ?t w:acidity ?a }", woods).problems
    assert problem.fields["service"] == SOIL


def test_no_more_than_five_problems_at_once(woods: Pack) -> None:
    query = "ASK { " + " ".join(f"?t w:nope{n} ?o{n} ." for n in range(9)) + " }"
    assert len(validate_semantic(query, woods).problems) == 5


@pytest.mark.parametrize(
    ("query", "patterns", "expected"),
    [
        (
            "SELECT ?l { GRAPH <http://liita.it/data> { ?e elita:HasEmotion elita:Gioia } }",
            [],
            ["wrong-graph"],
        ),
        ("SELECT ?d { ?w ontolex:sense ?s }", [], ["missing-service"]),
        (
            "SELECT ?l { ?e elita:HasEmotion ?x ; marl:hasPolarity ?p }",
            [],
            ["one-variable-two-entries"],
        ),
        (
            "SELECT ?a ?b { ?e vartrans:translatableAs/ontolex:canonicalForm ?a , ?b . "
            f"?a dcterms:isPartOf <{SICILIAN}> . ?b dcterms:isPartOf <{PARMIGIANO}> }}",
            [],
            ["one-variable-two-entries"],
        ),
        (
            f'SELECT ?n {{ SERVICE <{COMPLIT}> {{ ?a ontolex:isSenseOf/rdfs:label "animale"@it . '
            "?a lexinfo:hyponym ?s . ?s ontolex:isSenseOf/rdfs:label ?n } }",
            ["HYPONYM"],
            ["reversed-direction"],
        ),
        (
            f'SELECT ?n {{ SERVICE <{COMPLIT}> {{ ?a ontolex:isSenseOf/rdfs:label "cane"@it . '
            "?s lexinfo:hyponym ?a . ?s ontolex:isSenseOf/rdfs:label ?n } }",
            ["HYPERNYM"],
            ["reversed-direction"],
        ),
    ],
)
def test_what_goes_wrong_silently_in_liita(
    query: str, patterns: list[str], expected: list[str]
) -> None:
    assert codes(query, "liita", *patterns) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?m ?n { ?p up:mnemonic ?m . ?g up:encodedBy ?p ; skos:prefLabel ?n }",
        "SELECT ?n { ?p a up:Protein . ?t up:organism ?p ; up:scientificName ?n }",
        "SELECT ?n { ?d up:disease ?a . ?p up:annotation ?a . ?d a up:Disease }",
    ],
)
def test_reversed_patterns_of_uniprot(query: str) -> None:
    assert codes(query, "uniprot") == ["reversed-direction"]


def test_a_folder_without_schema_knows_nothing_against_a_query(tmp_path: Path) -> None:
    bare = load_pack(tmp_path)
    query = "PREFIX e: <http://e/> SELECT ?s { GRAPH e:g { ?s a e:T ; e:p ?o ; e:q ?s } }"
    assert codes(query, bare, "ANY") == []


# -- the question -------------------------------------------------------------------------------

EMOTIONS = """SELECT ?w { GRAPH <http://liita.it/data> { ?lemma ontolex:writtenRep ?w }
?e ontolex:canonicalForm ?lemma . GRAPH <http://w3id.org/elita> { ?e elita:HasEmotion %s } }"""
SPELLED = """SELECT ?w { GRAPH <http://liita.it/data> {
?lemma ontolex:writtenRep ?w ; lila:hasPOS lila:adjective FILTER(REGEX(?w, "%s")) } }"""


@pytest.mark.parametrize(
    ("question", "query", "expected"),
    [
        ("Which words express 'joy'?", EMOTIONS % "elita:Gioia", []),
        ("Which words express 'joy'?", EMOTIONS % "elita:Disgusto", ["not-named"]),
        ("Words that express sadness", EMOTIONS % "elita:Tristezza", []),
        ("Words that express sadness", EMOTIONS % "elita:Disgusto", ["missing-value"]),
        ("Find nouns expressing sadness", EMOTIONS % "elita:Disgusto", ["missing-value"] * 2),
        ("Which antonyms do words of joy have?", EMOTIONS % "elita:Gioia", ["missing-pattern"]),
        ("Give an antonym of a word of joy", EMOTIONS % "elita:Gioia", ["missing-pattern"]),
        ("Words of joy and their polarity", EMOTIONS % "elita:Gioia", ["missing-pattern"]),
        ("Aggettivi che finiscono in '-bile'", SPELLED % "bile$", []),
        ("Aggettivi che finiscono in '-bile'", SPELLED % "oso$", ["not-named"]),
        ("Aggettivi in -bile", SPELLED % "oso$", ["not-named"]),
        ("Emozioni di 're'", EMOTIONS % "elita:Disgusto", ["not-named"]),
        ("Emozioni di 'gatto'", EMOTIONS % "?x FILTER(STR(?x) = 'gattopardo')", ["not-named"]),
        ("Emozioni di 'gatto'", EMOTIONS % "?x FILTER(STR(?x) = 'gatto')", []),
        ("Aggettivi che contengono '-zz-'", SPELLED % "zz", []),
        ("Parole di 'tristezze'", EMOTIONS % "?x FILTER(STR(?x) = 'tristezza')", []),
        ("Emozioni di 'la pioggia'", EMOTIONS % "?x FILTER(STR(?x) = 'pioggia')", []),
        ("Which words have an 'emotion'?", EMOTIONS % "?x", []),
        ("Aggettivi in 'oso' o 'osa'", SPELLED % "os[oa]$", []),
        ("Aggettivi in 'oso' o 'osa'", SPELLED % "(oso|osa)$", []),
        ("Aggettivi in 'oso' o 'osa'", SPELLED % "[a-z]+$", ["not-named"]),
        ("Aggettivi in 'oso' o 'osa'", SPELLED % "(o|s)*a", ["not-named"]),
        ("Words with a polarity over 0.9", "SELECT ?e { ?e marl:hasPolarityValue ?v }", []),
    ],
)
def test_a_query_has_what_its_question_asks_for(
    question: str, query: str, expected: list[str]
) -> None:
    found = validate_semantic(query, "liita", question=question).problems
    assert [problem.code for problem in found] == expected


@pytest.mark.parametrize(
    ("question", "query", "expected"),
    [
        ("Which proteins are in the 'nucleus'?", "?l up:cellularComponent location:191", []),
        ("Which proteins are in the 'nucleus'?", "?p a up:Protein", ["not-named"]),
        ("Which proteins have EC 2.7.11.1?", "?p up:enzyme ec:2.7.11.1", []),
        ("Which proteins have EC 2.7.11.1?", "?p up:enzyme ec:2.7.11.2", ["not-named"]),
        ("Which proteins have GO:0005634?", "?p up:classifiedWith GO:0005634", []),
        ("Which proteins have GO:0005634?", "?p up:classifiedWith obo:GO_0005634", []),
        ("Which proteins have GO:0005634?", "?p up:classifiedWith GO:0005635", ["not-named"]),
        ("What rests on ECO:0000269?", "?p up:evidence obo:ECO_0000269", []),
        ("What rests on ECO:0000269?", "?p up:evidence ?e", ["not-named"]),
        ("How heavy is Y3146_SACD2?", "uniprotkb:Q4JC07 up:sequence/up:mass ?p", []),
        ("How heavy is Y3146_SACD2?", "?p up:sequence/up:mass ?m", ["not-named"]),
        ("How many proteins has Homo sapiens?", "?p up:organism taxon:9606", ["missing-pattern"]),
    ],
)  # fmt: skip
def test_names_and_codes_of_uniprot(question: str, query: str, expected: list[str]) -> None:
    sparql = f"SELECT DISTINCT ?p {{ {query} }}"
    found = validate_semantic(sparql, "uniprot", question=question).problems
    own = ("not-named", "missing-pattern")
    assert [problem.code for problem in found if problem.code in own] == expected


def test_hints_name_the_value_and_the_end_of_the_word() -> None:
    (found,) = validate_semantic(
        EMOTIONS % "elita:Disgusto", "liita", question="Which words express 'joy'?"
    ).problems
    assert "elita:Gioia" in found.hint
    (found,) = validate_semantic(
        SPELLED % "oso$", "liita", question="Aggettivi in '-bile' e '-ivo'"
    ).problems
    assert "bile$|ivo$" in found.hint
    assert "VALUES" not in found.hint
    (found,) = validate_semantic(
        SPELLED % "oso$", "liita", question="Parole in '-zz-', 'ri-'"
    ).problems
    assert '"zz|^ri"' in found.hint


#: Right for a few questions about emotions; names no word that a question may name.
FIXED = """SELECT DISTINCT ?label { GRAPH <http://liita.it/data> { ?l ontolex:writtenRep "morte" }
?e ontolex:canonicalForm ?l .
GRAPH <http://w3id.org/elita> { ?e elita:HasEmotion ?x . ?x rdfs:label ?label } }"""


@pytest.mark.parametrize("name", ["liita-instances", "uniprot-instances"])
def test_golds_of_instances_pass_with_their_questions(name: str) -> None:
    pack = load_pack(name)
    wrong = {}
    for language in pack.languages:
        split = split_tasks(load_corpus(pack, language=language).tasks)
        for task in (*split.train, *split.dev):
            found = validate_semantic(task.expected_sparql, pack, question=task.query).problems
            if found:
                wrong[task.query] = [(one.code, one.what) for one in found]
    assert wrong == {}


@pytest.mark.parametrize("name", ["liita", "liita-test", "uniprot"])
def test_golds_pass_with_their_questions_and_one_fixed_query_does_not(name: str) -> None:
    pack = load_pack(name)
    passed = total = 0
    for language in pack.languages or ("en",):
        for task in load_corpus(pack, language=language).tasks:
            if task.language == language and task.form != "UPDATE":
                needs = [one.pattern for one in detector_of(pack).detect(task.query)]
                gold = task.expected_sparql
                assert validate_semantic(gold, pack, needs, question=task.query).problems == ()
                if name != "uniprot":
                    passed += validate_semantic(FIXED, pack, needs, question=task.query).ok
                total += 1
    assert passed <= total * 0.08


# -- endpoint -----------------------------------------------------------------------------------


def test_a_query_that_works_tells_rows_and_time(woods_endpoint: EndpointConfig) -> None:
    found = validate_endpoint("SELECT ?n { ?t rdfs:label ?n } ORDER BY ?n", woods_endpoint)
    success, error, count, results = found
    assert (success, error, count, results) == (True, None, 2, [{"n": "oak"}, {"n": "pine"}])
    assert found.ok
    assert found.seconds > 0


def test_an_empty_answer_executes_and_is_a_problem(woods_endpoint: EndpointConfig) -> None:
    for query in ("SELECT ?t { ?t w:height 99 }", "CONSTRUCT WHERE { ?t w:height 99 }"):
        found = validate_endpoint(query, woods_endpoint)
        assert found.executed
        assert [problem.code for problem in found.problems] == ["empty"]


@pytest.mark.parametrize(("height", "answer"), [(31, True), (99, False)])
def test_ask_is_right_either_way(woods_endpoint: EndpointConfig, height: int, answer: bool) -> None:
    found = validate_endpoint(f"ASK {{ ?t w:height {height} }}", woods_endpoint)
    assert found.ok
    assert found.results == ({"answer": answer},)


def test_a_broken_query_is_its_own_fault(woods_endpoint: EndpointConfig) -> None:
    success, error, count, results = validate_endpoint("SELECT ?t {", woods_endpoint)
    assert (success, count, results) == (False, 0, [])
    assert "add the '}'" in error


def test_a_client_stays_open_and_a_dead_endpoint_is_not_the_querys_fault(
    woods_endpoint: EndpointConfig,
) -> None:
    with SPARQLClient(woods_endpoint) as client:
        assert validate_endpoint("ASK {}", client).ok
        assert validate_endpoint("ASK {}", client).ok
    nobody = EndpointConfig("http://127.0.0.1:9/sparql", "Nobody", retries=0)
    with pytest.raises(EndpointError):
        validate_endpoint("ASK {}", nobody)


def test_levels_build_on_one_another(woods: Pack, woods_endpoint: EndpointConfig) -> None:
    problems, checked = validate("SELECT", woods, endpoint=woods_endpoint)
    assert [problem.fields["level"] for problem in problems] == ["syntax"]
    assert checked is None
    problems, checked = validate("SELECT ?t { ?t w:hight ?h }", woods, endpoint=woods_endpoint)
    assert [problem.fields["level"] for problem in problems] == ["semantic", "endpoint"]
    assert checked is not None
    problems, checked = validate("SELECT ?t { ?t w:hight ?h }", woods, levels=["syntax"])
    assert problems == ()
