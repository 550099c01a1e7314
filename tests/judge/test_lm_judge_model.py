"""The LM judge with the embedded model; `reasoningbank lm pull local` brings its weights."""

from __future__ import annotations

import os

import pytest

from reasoningbank.judge import AnswerSample, Case, LMJudge
from reasoningbank.judge.lm_judge import MAX_REPLY_TOKENS
from reasoningbank.lm import open_lm

TREE = "t:Tree (class): a tall plant"
HEIGHT = "t:height (property): from t:Tree to xsd:integer; height in metres"


@pytest.mark.model
@pytest.mark.skipif(
    os.environ.get("REASONINGBANK_NO_MODEL") == "1",
    reason="REASONINGBANK_NO_MODEL=1: the weights of the embedded model are not wanted here",
)
def test_the_embedded_model_judges_in_the_form_it_is_asked_for() -> None:
    right = Case(
        "Which trees are higher than 30 m? Give the tree.",
        "SELECT ?tree WHERE { ?tree a t:Tree ; t:height ?h . FILTER(?h > 30) }",
        AnswerSample(("tree",), (("<http://e/oak>",), ("<http://e/pine>",)), 2),
        names=(TREE, HEIGHT),
        prefixes={"t": "http://e/"},
    )
    wrong = Case(
        "Which trees are higher than 30 m? Give the tree.",
        "SELECT ?moss WHERE { ?moss t:colour ?c . }",
        AnswerSample(("moss",), (), 0),
        names=("t:colour: no class or property of this name is known",),
        prefixes={"t": "http://e/"},
    )
    with open_lm("local") as model:
        judge = LMJudge(model.lm(role="judge", max_tokens=MAX_REPLY_TOKENS))
        first, second = judge.judge(right), judge.judge(wrong)
    assert (first.status, second.status) == ("judged", "judged")
    assert (first.success, second.success) == (True, False)
    assert first.checked
    assert first.reason
    # The cases that stand first in every prompt were read once.
    assert second.usage.cached_prompt_tokens > second.usage.prompt_tokens / 2
