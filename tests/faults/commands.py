"""What a person may give: one line and exit status 1, nothing half done."""

from __future__ import annotations

from reasoningbank.corpus import load_corpus, load_pack, load_shacl_tasks
from reasoningbank.sparql import EndpointConfig, OxigraphServer

from .scene import Fault, Scene


def command(name: str, *words: str, said: str) -> Fault:
    through = f"reasoningbank {' '.join(words)}"
    return Fault(name, through, lambda s: s.command(*words), said, "exit 1")


def pack(scene: Scene, text: str, **files: str) -> object:
    for name, content in files.items():
        scene.file(f"pack/{name.replace('__', '.')}", content)
    return load_pack(scene.file("pack/pack.toml", text).parent)


def served(scene: Scene, name: str, text: str) -> object:
    with OxigraphServer([scene.file(name, text)]) as server:
        return server.url


def examples(scene: Scene, text: str) -> object:
    folder = scene.file("examples/one.ttl", text).parent
    corpus = load_corpus(folder)
    return f"{len(corpus.tasks)} tasks; {'; '.join(map(str, corpus.findings))}"


def unwritable(scene: Scene) -> object:
    scene.file(
        "small.toml",
        'name = "small"\npack = "uniprot"\n[[arms]]\nname = "gold"\nagent = "oracle"\n',
    )
    scene.file("taken", "")
    return scene.command("run", "small.toml", "--out", "taken/runs")


COMMANDS = [
    Fault(
        "a query that cannot be parsed",
        "reasoningbank endpoint query SELEC",
        lambda s: s.command("endpoint", "query", "SELEC", "--url", s.trees.address),
        r"line 1, column 1",
        "exit 1",
    ),
    command(
        "an address where nobody is",
        "endpoint",
        "query",
        "ASK {}",
        "--url",
        "http://127.0.0.1:1/",
        said=r"no connection.*check the address",
    ),
    command(
        "an invalid address",
        "endpoint",
        "query",
        "ASK {}",
        "--url",
        "sparql.example.org",
        said=r"http:// or https://",
    ),
    command("an unknown pack", "tasks", "list", "nosuch", said=r"unknown pack 'nosuch'.*uniprot"),
    command(
        "an unknown experiment", "run", "nosuch.toml", said=r"nosuch.toml: no such experiment file"
    ),
    command("an unknown run", "status", "runs/nosuch", said=r"runs/nosuch"),
    Fault(
        "an experiment that is no TOML",
        "reasoningbank run bad.toml",
        lambda s: (s.file("bad.toml", "name = \n"), s.command("run", "bad.toml")),
        r"bad.toml: .*line 1",
        "exit 1",
    ),
    Fault(
        "a folder that cannot be written",
        "reasoningbank run small.toml --out taken/runs",
        unwritable,
        r"taken",
        "exit 1",
    ),
]

FILES = [
    Fault(
        "a corpus folder that is not there",
        "load_shacl_tasks('nosuch/')",
        lambda s: load_shacl_tasks(s.folder / "nosuch"),
        r"nosuch",
        "UsageError",
    ),
    Fault(
        "a pack.toml that is no TOML",
        "load_pack",
        lambda s: pack(s, "name = \n"),
        r"pack.toml: .*line 1",
        "UsageError",
    ),
    Fault(
        "a pack.toml with a misspelt key",
        "load_pack",
        lambda s: pack(s, 'name = "x"\nendpoint = "http://e/"\nexmaples = "x"\n'),
        r"exmaples",
        "UsageError",
    ),
    Fault(
        "data that is not there",
        "OxigraphServer",
        lambda s: OxigraphServer([s.folder / "nosuch.ttl"]).start(),
        r"nosuch.ttl: cannot be read",
        "UsageError",
    ),
    Fault(
        "data that does not parse",
        "OxigraphServer",
        lambda s: served(s, "bad.ttl", "<http://e/a> <http://e/b> ."),
        r"bad.ttl: cannot be loaded",
        "UsageError",
    ),
    Fault(
        "data of an unknown format",
        "OxigraphServer",
        lambda s: served(s, "data.csv", "a,b"),
        r"data.csv: not an RDF file",
        "UsageError",
    ),
    Fault(
        "an example that does not parse",
        "load_shacl_tasks",
        lambda s: examples(s, "@prefix ex: <urn:x> . ex:a ex:b"),
        r"one.ttl",
        "result",
    ),
    Fault(
        "an invalid address",
        "EndpointConfig('sparql.example.org')",
        lambda s: EndpointConfig("sparql.example.org"),
        r"http:// or https://",
        "UsageError",
    ),
    Fault(
        "a header with a line break",
        "EndpointConfig(headers=…)",
        lambda s: EndpointConfig("http://e/", headers={"X": "a\r\nY: b"}),
        r"header 'X'",
        "UsageError",
    ),
]
