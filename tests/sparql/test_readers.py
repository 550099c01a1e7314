"""What stands in an answer and is no result: its errors can be kept, in any thread."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reasoningbank.errors import EndpointError
from reasoningbank.sparql.readers import Broken, read_table
from reasoningbank.sparql.results import columns, decode
from reasoningbank.sparql.termtext import read_term

JSON = "application/sparql-results+json"
HEAD = b'{"head":{"vars":["x"]},"results":{"bindings":['


def broken_off() -> object:
    return read_table(HEAD + b'{"x":{"type":"uri","va', JSON, cut=False, max_rows=9)


def no_term() -> object:
    return read_term('"x')


def no_terms() -> object:
    return decode(columns(("x",), [['"1"'], ['"x']]), 2)


@pytest.mark.parametrize(
    ("read", "error"), [(broken_off, Broken), (no_term, EndpointError), (no_terms, EndpointError)]
)
def test_an_error_can_be_dropped_in_another_thread(
    read: Callable[[], object], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(read).exception()
    assert isinstance(found, error)
    del found
    gc.collect()
    assert not unraisable
