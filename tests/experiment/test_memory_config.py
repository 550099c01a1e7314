"""What a file may say of memory, sampling and learning, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, parse_experiment
from reasoningbank.experiment.memory_config import bank_arm, control_of, seeds_of

LEARNED: dict[str, Any] = {"name": "learned", "agent": "direct", "memory": "learned"}


def arm(name: str = "a", **rest: Any) -> dict[str, Any]:
    return {"name": name, "agent": "direct", **rest}


def parsed(*arms: dict[str, Any], **rest: Any) -> Experiment:
    return parse_experiment({"name": "x", "pack": "p", "arms": list(arms), **rest})


def learn(*arms: dict[str, Any], **rest: Any) -> Experiment:
    return parsed(*arms, LEARNED, mode="learn", **rest)


MATCHED: dict[str, Any] = {"temperature": 0.7, "sampling": {"tokens_of": "learned", "k": 9}}


@pytest.mark.parametrize(
    ("arms", "named"),
    [
        ([arm(memory="learnt")], r"arms\.a\.memory\.source: .*'learned'"),
        ([arm(memory={"source": "gold", "kind": []})], "unknown key; did you mean kinds"),
        ([arm(memory={"tokens": 100})], "has settings and no source"),
        ([arm(memory="placebo")], "a placebo needs of"),
        ([arm(memory="bank")], "source = 'bank' needs bank"),
        ([arm(memory={"source": "gold", "of": "learned"})], "has a bank of its own"),
        ([arm(memory={"source": "gold", "bank": "x.jsonl"})], "bank is for source = 'bank'"),
        ([arm(memory={"source": "learned", "kinds": ["gold"]})], "a stream distils success"),
        ([arm(memory={"source": "gold", "judge": "lm"})], "judge and distiller are for an arm"),
        ([arm(memory={"source": "learned", "judge": "lm"})], "arm a: memory.judge = 'lm' needs"),
        ([arm(memory={"source": "gold", "show": "tools"})], "direct has no tools"),
        ([arm(memory={"source": "gold", "demonstrations": True})], "for rlm alone"),
        ([arm(agent="rlm", memory={"source": "gold", "show": "tools", "demonstrations": True})],
         "demonstrations need show"),
        ([arm(layers=["L2"])], "L2 is what memory holds"),
        ([arm(layers=["L4"])], r"arms\.a\.layers"),
        ([arm(sampling={"k": 3})], "all the same at temperature 0"),
        ([arm(sampling={"k": 3, "temperature": 0})], r"arms\.a\.sampling\.temperature"),
        ([arm(sampling={"k": 1}, temperature=0.7)], "k = 1 is no sampling"),
        ([arm(sampling={"kind": "sequential", "tokens_of": "learned"})], "tokens_of is for kind"),
        ([arm(temperature=0.7, sampling={"tokens_of": "learned", "phase": "stream"})],
         "tokens_of is of held-out trials"),
        ([arm(sampling={"tokens_of": "b"}, temperature=0.7)], "arm a: names 'b', which is no arm"),
        ([arm(memory={"source": "placebo", "of": "b"})], "arm a: names 'b', which is no arm"),
        ([arm(memory={"source": "placebo", "of": "b"}), arm("b")], "'b', which has no memory"),
        ([arm(memory={"source": "placebo", "of": "b"}),
          arm("b", memory={"source": "placebo", "of": "a"})], "depends on 'b', and that on it"),
        ([arm(memory={"source": "learned", "of": "b"}), arm("b", memory="gold")],
         "'b', which learns nothing"),
        ([arm(seeds=[0, 4], **MATCHED)], "has seed 4, which 'learned' has not"),
        ([arm(memory={"source": "placebo", "of": "learned"}, seeds=[3])], "has seed 3, which"),
        ([arm(stream=True, memory={"source": "placebo", "of": "learned"})], "leave out stream"),
        ([arm(stream=True, **MATCHED)], "leave out stream"),
        ([arm(memory="learned", **MATCHED)], "arm a: sampling.tokens_of is of the evaluation"),
        ([arm(memory={"source": "placebo", "of": "learned", "items": 4})], "have its items"),
        ([arm(memory={"source": "placebo", "of": "learned", "tokens": 90})], "have its tokens"),
        ([arm(agent="rlm", memory={"source": "placebo", "of": "learned", "show": "tools"})],
         "have its show"),
        ([arm(memory={"source": "placebo", "of": "learned", "kinds": ["success"]})],
         "a placebo of 'learned' has to have its kinds"),
        ([arm(agent="rlm", memory={"source": "placebo", "of": "learned", "demonstrations": True})],
         "have its demonstrations"),
        ([arm(seeds=[1, 1])], "a seed is named twice"),
        ([arm(agent="oracle", memory="gold")], "the oracle has no use for memory"),
    ],
)  # fmt: skip
def test_what_does_not_hang_together_is_told_in_one_line(
    arms: list[dict[str, Any]], named: str
) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        learn(*arms)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arms", "named"),
    [
        ([LEARNED], "arm learned: memory.source = 'learned' needs mode = 'learn'"),
        ([arm(stream=True)], "arm a: stream needs mode = 'learn'"),
    ],
)
def test_without_a_stream_nothing_learns(arms: list[dict[str, Any]], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        parsed(*arms)


@pytest.mark.parametrize(
    "extra", [{"memory": "gold"}, {"layers": ["L0"]}, {"sampling": {}, "temperature": 1.0}]
)
def test_dask_runs_no_arm_that_remembers(extra: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="run in threads"):
        parsed(arm(**extra), executor="dask")


def test_a_word_is_a_source_and_none_is_the_default() -> None:
    plain = parsed(arm())
    assert parsed(arm(memory="none")).fingerprint() == plain.fingerprint()
    assert parsed(arm(memory="gold")).arms[0].memory.source == "gold"
    assert not plain.remembers
    assert parsed(arm(layers=["L0"])).remembers
    # What an older manifest says of memory.
    assert parsed(arm(memory="none", layers=[])).arms[0].memory.source == "none"


def test_banks_are_those_of_the_arm_at_the_end() -> None:
    tools = arm("tools", agent="rlm", memory={"source": "learned", "of": "learned", "show": "both"})
    dealt = {"source": "placebo", "of": "tools", "show": "both"}
    placebo = arm("placebo", agent="rlm", memory=dealt)
    experiment = learn(tools, placebo)
    arms = {one.name: one for one in experiment.arms}
    assert bank_arm(arms, arms["placebo"]).name == "learned"
    assert not arms["tools"].memory.learns


def test_the_control_is_alike_but_for_memory() -> None:
    others = [
        arm("idle"),
        arm("sampled", stream=True, temperature=0.5, sampling={}),
        arm("other", stream=True, lm="openai/x"),
        arm("layered", stream=True, layers=["L0"]),
        arm("none", stream=True, seeds=[7]),
    ]
    experiment = learn(*others, arm("deep", memory="learned", layers=["L0"]), seeds=[0, 1])
    arms = {one.name: one for one in experiment.arms}
    control = control_of(experiment, arms["learned"])
    assert control is not None
    assert control.name == "none"
    deep = control_of(experiment, arms["deep"])
    assert deep is not None
    assert deep.name == "layered"
    assert seeds_of(experiment, control) == (7,)
    assert seeds_of(experiment, arms["learned"]) == (0, 1)
    assert control_of(learn(), LEARNED_ARM) is None


@pytest.mark.parametrize(
    "unlike",
    [
        {"temperature": 0.5},
        {"max_tokens": 100},
        {"tools": []},
        {"demonstrations": False},
        {"budget": {"lm_calls": 3}},
        {"sampling": {"kind": "sequential"}},
        {"sampling": {"temperature": 0.7}},
    ],
)
def test_a_control_is_alike_in_all_but_memory(unlike: dict[str, Any]) -> None:
    plain, other = arm("plain", stream=True), arm("other", stream=True, **unlike)
    experiment = learn(other, plain, arm("unlike", memory="learned", **unlike))
    arms = {one.name: one for one in experiment.arms}
    for learner, expected in (("learned", "plain"), ("unlike", "other")):
        control = control_of(experiment, arms[learner])
        assert control is not None
        assert control.name == expected


def test_only_what_is_sampled_in_the_stream_tells_a_control_apart() -> None:
    later = {"kind": "sequential", "phase": "evaluation"}
    experiment = learn(arm("plain", stream=True), arm("later", memory="learned", sampling=later))
    control = control_of(experiment, experiment.arms[1])
    assert control is not None
    assert control.name == "plain"


def test_a_control_is_judged_by_whom_the_learner_believes() -> None:
    believes = arm("lm", memory={"source": "learned", "judge": "lm"}, judge_lm="local")
    none = arm("none", stream=True)
    assert control_of(learn(none, believes), learn(none, believes).arms[1]) is None
    experiment = learn(none | {"judge_lm": "local"}, believes)
    for learner in experiment.arms[1:]:
        control = control_of(experiment, learner)
        assert control is not None
        assert control.name == "none"


def test_a_placebo_deals_what_a_bank_on_file_would_show() -> None:
    bank = {"source": "bank", "bank": "x.jsonl", "kinds": ["seed"], "items": 2}
    same = {"source": "placebo", "of": "bank", "kinds": ["seed"], "items": 2}
    assert parsed(arm("bank", memory=bank), arm("p", memory=same)).arms[1].memory.items == 2
    with pytest.raises(UsageError, match="have its kinds"):
        parsed(arm("bank", memory=bank), arm("p", memory=same | {"kinds": []}))


LEARNED_ARM = learn().arms[-1]
