"""The adapter of sparql-llm: the package itself, where its environment is; a scripted model."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyoxigraph
import pytest
from asked_models import make_lm

from reasoningbank.agents import Episode, make_agent
from reasoningbank.cache import cache_dir
from reasoningbank.corpus import Pack, load_corpus, split_tasks

QUERY = "SELECT ?plant WHERE { ?plant t:height ?h . FILTER(?h > 7) }"


class ScriptedServer(BaseHTTPRequestHandler):
    """A scripted model: it calls the function that it is given, and else answers with a query."""

    protocol_version = "HTTP/1.1"  # A connection that is kept open shows whether its loop is
    asked: list[dict[str, Any]]
    address: str

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append(body)
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if body.get("tools"):
            extracted = {"intent": "access_resources", "extracted_classes": ["plant"]}
            extracted |= {"extracted_entities": []}
            name = body["tools"][0]["function"]["name"]
            call = {"name": name, "arguments": json.dumps(extracted)}
            message["tool_calls"] = [{"id": "c1", "type": "function", "function": call}]
        else:
            block = f"```sparql\n#+ endpoint: {self.address}\n{QUERY}\n```"
            message["content"] = f"Here it is:\n{block}\n"
        said = json.dumps(
            {
                "id": "r1",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
            }
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[tuple[str, type[ScriptedServer]]]:
    class Handler(ScriptedServer):
        asked: list[dict[str, Any]] = []  # noqa: RUF012

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}/v1", Handler
        served.shutdown()


def test_examples_and_prefixes_are_written_as_the_package_reads_them() -> None:
    from experiments.peers.sparql_llm_peer import turtle

    examples = [{"question": 'What is "oak"?\nTell.', "query": 'ASK { ?a ?b "\\"" }\n'}]
    setting = {"prefixes": {"t": "http://e/"}, "examples": examples}
    store = pyoxigraph.Store()
    store.load(turtle(setting), format=pyoxigraph.RdfFormat.TURTLE)
    names = {"sh": "http://www.w3.org/ns/shacl#", "rdfs": "http://www.w3.org/2000/01/rdf-schema#"}
    head = " ".join(f"PREFIX {name}: <{iri}>" for name, iri in names.items())
    pattern = "?e a sh:SPARQLExecutable ; rdfs:comment ?question ; sh:select ?query"
    found: Any = store.query(f"{head} SELECT * {{ {pattern} }}")
    read = [{name: one[name].value for name in ("question", "query")} for one in found]
    assert read == examples
    known: Any = store.query(f"{head} SELECT * {{ [] sh:prefix ?p ; sh:namespace ?n }}")
    assert [(one["p"].value, one["n"].value) for one in known] == [("t", "http://e/")]


@pytest.mark.skipif(
    not (cache_dir() / "peers" / "sparql-llm" / "bin" / "python").exists(),
    reason="no sparql-llm here: python scripts/peers.py makes its environment",
)
def test_the_package_answers_with_what_it_retrieved(
    orchard: Pack, episode: Callable[..., Episode], server: tuple[str, type[ScriptedServer]]
) -> None:
    address, model = server
    trial = episode(make_lm("local", api_base=address))
    model.address = trial.endpoint.address
    agent = make_agent("experiments.peers.process:Peer", peer="sparql-llm", offline_embedder=True)
    task = load_corpus(orchard).tasks[0]
    attempt = agent.solve(task.blind(), trial)
    assert attempt.status == "submitted", attempt.error
    assert attempt.sparql is not None
    # The package declares the prefix, which it knows from the examples file.
    assert QUERY in attempt.sparql
    assert "PREFIX t: <http" in attempt.sparql
    # One call extracts, and its graph asks again after each execution, as often as it may.
    assert attempt.usage.lm_calls == len(model.asked) == 5
    assert attempt.usage.tokens == 12 * 5
    prompt = json.dumps(model.asked[1]["messages"])
    assert sum(one.query in prompt for one in split_tasks(load_corpus(orchard).tasks).train) > 3
    again = agent.solve(load_corpus(orchard).tasks[1].blind(), episode(trial.lm))
    assert (again.status, again.usage.lm_calls) == ("submitted", 5), again.error
