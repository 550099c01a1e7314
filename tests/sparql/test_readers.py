"""What stands in an answer and is no result: its errors can be kept, in any thread."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyoxigraph import Literal

from reasoningbank.sparql.formats import Broken, read_table
from reasoningbank.sparql.results import columns, decode
from reasoningbank.sparql.terms import read_term

JSON = "application/sparql-results+json"
HEAD = b'{"head":{"vars":["x"]},"results":{"bindings":['


def broken_off() -> object:
    return read_table(HEAD + b'{"x":{"type":"uri","va', JSON, cut=False, max_rows=9)


def test_what_is_no_term_is_read_as_text() -> None:
    assert read_term('"x') == Literal('"x')
    assert decode(columns(("x",), [['"1"'], ['"x']]), 2) == [(Literal("1"),), (Literal('"x'),)]


def test_an_error_can_be_dropped_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(broken_off).exception()
    assert isinstance(found, Broken)
    del found
    gc.collect()
    assert not unraisable
