"""Plain chat: what a model is really sent."""

from __future__ import annotations

import dspy
from dspy.utils import DummyLM

from reasoningbank.lm import PlainAdapter


def test_a_conversation_is_instructions_turns_and_the_question() -> None:
    signature = dspy.Signature("question -> sparql", "Answer in SPARQL.")
    predict = dspy.Predict(signature)
    predict.demos = [dspy.Example(question="Any?", sparql="ASK {}").with_inputs("question")]
    lm = DummyLM([{"sparql": "ASK { ?s ?p ?o }"}])
    with dspy.context(lm=lm, adapter=PlainAdapter()):
        said = predict(question="Anything?").sparql
    assert "ASK { ?s ?p ?o }" in said
    assert [(one["role"], one["content"]) for one in lm.history[0]["messages"]] == [
        ("system", "Answer in SPARQL."),
        ("user", "Any?"),
        ("assistant", "ASK {}"),
        ("user", "Anything?"),
    ]
