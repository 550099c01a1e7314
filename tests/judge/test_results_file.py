"""Reading answers from files."""

from pathlib import Path

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.judge import compare_files, read_answer

SRJ = """{"head": {"vars": ["x", "n"]}, "results": {"bindings": [
  {"x": {"type": "uri", "value": "http://e/a"},
   "n": {"type": "typed-literal", "value": "1", "datatype": "http://www.w3.org/2001/XMLSchema#int"}},
  {"x": {"type": "bnode", "value": "b0"}}]}}"""
SRX = """<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#">
<head><variable name="n"/><variable name="y"/></head><results>
<result><binding name="y"><bnode>q</bnode></binding></result>
<result><binding name="n"><literal datatype="http://www.w3.org/2001/XMLSchema#integer">1</literal>
</binding><binding name="y"><uri>http://e/a</uri></binding></result></results></sparql>"""
TSV = "?x\t?n\n<http://e/a>\t1\n_:z\t\n"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_same_results_in_three_formats(tmp_path: Path) -> None:
    files = [
        written(tmp_path, "a.srj", SRJ),
        written(tmp_path, "b.srx", SRX),
        written(tmp_path, "c.tsv", TSV),
    ]
    for one in files:
        for other in files:
            assert compare_files(one, other).strict
    other = written(tmp_path, "d.tsv", "?x\t?n\t?m\n<http://e/a>\t1\t5\n_:z\t\t6\n")
    assert not compare_files(files[0], other).match
    assert compare_files(files[0], other, lenient=True).match


def test_order_and_repetition_are_options(tmp_path: Path) -> None:
    one = written(tmp_path, "a.tsv", "?n\n1\n1\n2\n")
    other = written(tmp_path, "b.tsv", "?n\n2\n1\n")
    assert compare_files(one, other).match
    assert not compare_files(one, other, bag=True).match
    assert not compare_files(one, other, ordered=True).match


def test_booleans_and_graphs(tmp_path: Path) -> None:
    yes = written(tmp_path, "a.srj", '{"head": {}, "boolean": true}')
    also = written(
        tmp_path,
        "b.srx",
        '<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head/><boolean>true</boolean></sparql>',
    )
    assert compare_files(yes, also).strict
    turtle = written(tmp_path, "g.ttl", "<http://e/a> <http://e/p> [ <http://e/q> 1 , 01 ] .")
    lines = written(
        tmp_path,
        "g.nt",
        "<http://e/a> <http://e/p> _:k .\n"
        '_:k <http://e/q> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
    )
    assert compare_files(turtle, lines).strict
    assert read_answer(lines).n_rows == 2


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("a.srj", "{", "usage"),
        ("a.srx", "<html><body>down</body></html>", "usage"),
        ("a.tsv", "?x\nnot a term\n", "usage"),
        ("a.ttl", "<a> <b>", "usage"),
        ("a.nt", "<http://e/a> <http://e/p> .", "usage"),
        ("a.csv", "x\n1\n", "unknown-file-kind"),
        ("a.docx", "", "unknown-file-kind"),
        ("a", "", "unknown-file-kind"),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path: Path, name: str, text: str, code: str) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(UsageError) as caught:
        read_answer(path)
    assert (caught.value.code, caught.value.where) == (code, str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_answer(tmp_path / "none.srj")
    (tmp_path / "folder.srj").mkdir()
    with pytest.raises(UsageError, match="Is a directory"):
        read_answer(tmp_path / "folder.srj")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"?x\n\xff\xfe\n")
    with pytest.raises(UsageError):
        read_answer(path)
