"""What several rooms test with: a small served graph, and packs of a few tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from engines import VirtuosoServer, small_uniprot, virtuoso_program
from hypothesis import settings
from trees import EXAMPLES, PACK, TREES, serving_trees

from reasoningbank.sparql import EndpointConfig

# Not how long an example takes counts, but what comes of it.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def trees_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four named plants as Turtle."""
    file = tmp_path_factory.mktemp("trees") / "trees.ttl"
    file.write_text(TREES, encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def trees(trees_file: Path) -> Iterator[EndpointConfig]:
    """A real endpoint that serves them."""
    with serving_trees(trees_file) as config:
        yield config


@pytest.fixture
def make_pack(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes a pack of so many tasks into a folder and returns the folder."""

    def write(tasks: int = 3, name: str = "trees") -> Path:
        root = tmp_path / name
        (root / "examples").mkdir(parents=True)
        (root / "pack.toml").write_text(PACK, encoding="utf-8")
        (root / "trees.ttl").write_text(TREES, encoding="utf-8")
        examples = [
            f"ex:t{number:03} a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;\n"
            f'  rdfs:comment "Which plants are higher than {number % 30} m?"@en ;\n'
            f'  sh:select """SELECT ?plant WHERE {{ ?plant t:height ?h . '
            f'FILTER(?h > {number % 30}) }}""" ;\n'
            "  schema:target <https://trees.example/sparql/> .\n"
            for number in range(tasks)
        ]
        (root / "examples" / "tasks.ttl").write_text(EXAMPLES + "".join(examples), encoding="utf-8")
        return root

    return write


@pytest.fixture(autouse=True)
def _nothing_from_the_web_and_nothing_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """How busy the machine is decides no test: what explores an endpoint may take its time."""
    for name, seconds in {
        "sampling.QUERY_S": 60.0,
        "sampling.CALL_S": 120.0,
        "schema.STATISTICS_TIMEOUT_S": 120.0,
        "diagnosis.PROBE_TIMEOUT_S": 60.0,
        "lookups.MOST_SECONDS": 120.0,
    }.items():
        monkeypatch.setattr(f"reasoningbank.schema.{name}", seconds)


@pytest.fixture(scope="session")
def small_uniprot_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty proteins of the UniProt sample and all about them, as N-Quads in its named graphs.

    `engines.small_uniprot` says what it holds: about ten thousand quads, without VoID.
    """
    sample = Path(__file__).parent.parent / "ontology" / "uniprot" / "data" / "uniprot.nq.gz"
    file = tmp_path_factory.mktemp("small") / "uniprot.nq"
    small_uniprot(sample, file)
    return file


@pytest.fixture(scope="session")
def virtuoso(small_uniprot_file: Path) -> Iterator[VirtuosoServer]:
    """A second, foreign engine that serves `small_uniprot_file`; `.url` is its address.

    No VoID, no schema, no service description of ours; text is indexed for `bif:contains`.
    """
    if virtuoso_program() is None:
        pytest.skip("no Virtuoso here: python scripts/fetch_virtuoso.py brings it on Debian")
    with VirtuosoServer([small_uniprot_file]) as server:
        yield server
