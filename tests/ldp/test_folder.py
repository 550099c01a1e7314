"""Documents as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, Triple

from reasoningbank.errors import UsageError
from reasoningbank.ldp import Documents
from reasoningbank.ldp.exchange import Refused, read_triples

BASE = "http://e/base/"
A = NamedNode("http://e/a")
TRIPLES = [Triple(A, A, A)]


def test_a_document_is_a_file_that_can_be_read_without_us(tmp_path: Path) -> None:
    documents = Documents(BASE, folder=tmp_path)
    documents.put(f"{BASE}x/y", TRIPLES)
    assert (tmp_path / "x" / "y.ttl").read_text() == "<http://e/a> <http://e/a> <http://e/a> .\n"
    assert {file.name for file in tmp_path.rglob("*.ttl")} == {"index.ttl", "y.ttl"}
    documents.delete(f"{BASE}x/y")
    documents.delete(f"{BASE}x/")
    assert [file.name for file in tmp_path.iterdir()] == ["index.ttl"]


def test_files_written_by_hand_are_documents(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "e.ttl").write_text("<> <#p> _:b . _:b <#q> <../f> .")
    (tmp_path / "f.ttl").write_text("<> <#p> _:b .")
    documents = Documents(BASE, folder=tmp_path)
    read = documents.read(f"{BASE}d/e")
    assert read is not None
    assert any(f"<{BASE}f>" in str(triple) for triple in read.triples)
    assert documents.read(f"{BASE}d/") is not None
    # Labels of two files are not the same node.
    blank = "SELECT ?b { ?s ?p ?b FILTER(isBlank(?b)) }"
    assert len({str(row["b"]) for row in documents.query(blank)}) == 2  # type: ignore[union-attr]


def test_a_version_outlives_the_server(tmp_path: Path) -> None:
    (tmp_path / "f.ttl").write_text("<> <#p> [ <#q> [ <#r> 1 ] ], [ <#q> 2 ] .")
    seen = [Documents(BASE, folder=tmp_path).read(f"{BASE}f") for _ in range(2)]
    assert seen[0]
    assert seen[1]
    assert seen[0].version == seen[1].version
    documents = Documents(BASE, folder=tmp_path)
    for changed in ("<> <#p> [ <#q> [ <#r> 2 ] ], [ <#q> 2 ] .", "<> <#p> [ <#q> [ <#r> 1 ] ] ."):
        documents.put(f"{BASE}f", read_triples(changed.encode(), "text/turtle", f"{BASE}f"))
        now = documents.read(f"{BASE}f")
        assert now is not None
        assert now.version != seen[0].version


@pytest.mark.parametrize("name", ["index", "taken", "n" * 300])
def test_names_that_cannot_be_files_are_refused(tmp_path: Path, name: str) -> None:
    documents = Documents(BASE, folder=tmp_path)
    (tmp_path / "taken.ttl").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Refused) as refused:
        documents.put(BASE + name, TRIPLES)
    assert refused.value.status in (409, 414)
    assert documents.read(BASE + name) is None
    assert sorted(tmp_path.rglob("*")) == before


def test_a_disk_that_takes_no_more_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = Documents(BASE, folder=tmp_path)
    documents.put(f"{BASE}x", TRIPLES)
    before = documents.read(f"{BASE}x"), (tmp_path / "x.ttl").read_text()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("reasoningbank.cache.os.fsync", full)
    with pytest.raises(Refused, match="No space left") as refused:
        documents.put(f"{BASE}x", [])
    assert refused.value.status == 507
    assert (documents.read(f"{BASE}x"), (tmp_path / "x.ttl").read_text()) == before
    assert {file.name for file in tmp_path.iterdir()} == {"index.ttl", "x.ttl"}


def test_what_is_not_turtle_is_reported_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "bad.ttl").write_text("<a> <b>")
    with pytest.raises(UsageError) as caught:
        Documents(BASE, folder=tmp_path)
    assert caught.value.code == "not-turtle"
    assert caught.value.where.endswith("bad.ttl")
    (tmp_path / "bad.ttl").unlink()
    (tmp_path / "a b.ttl").write_text("")
    with pytest.raises(UsageError) as caught:
        Documents(BASE, folder=tmp_path)
    assert caught.value.code == "bad-file-name"


def test_one_place_or_the_other(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give one of"):
        Documents(BASE, folder=tmp_path / "a", store=tmp_path / "b")


def test_a_change_is_computed_anew_where_somebody_was_faster() -> None:
    documents = Documents(BASE)
    url = f"{BASE}x"
    documents.put(url, TRIPLES)
    late = iter([Triple(A, A, NamedNode("http://e/late"))])
    seen: list[int] = []

    def change(own: Sequence[Triple]) -> list[Triple]:
        seen.append(len(own))
        for triple in late:
            # A writer that need not wait.
            documents.put(url, [triple], add=True)
        return [*own, Triple(A, A, NamedNode("http://e/changed"))]

    documents.change(url, change)
    document = documents.read(url)
    assert document is not None
    assert len(document.triples) == 3
    assert seen == [1, 2]


def test_a_query_sees_one_moment(tmp_path: Path) -> None:
    documents = Documents(BASE)
    documents.put(f"{BASE}x", TRIPLES)
    found = documents.query("SELECT * { ?s <http://e/a> ?o }")
    documents.delete(f"{BASE}x")
    assert len(list(found)) == 1  # type: ignore[arg-type]


def test_a_container_may_be_called_like_a_file(tmp_path: Path) -> None:
    Documents(BASE, folder=tmp_path).put(f"{BASE}a.ttl/x", TRIPLES)
    again = Documents(BASE, folder=tmp_path)
    read = again.read(f"{BASE}a.ttl/x")
    assert read is not None
    assert list(read.triples) == TRIPLES


def test_a_folder_that_cannot_be_written_is_reported_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "index.ttl").mkdir()
    with pytest.raises(UsageError, match="another document"):
        Documents(BASE, folder=tmp_path)
