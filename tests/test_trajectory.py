"""The recorder keeps order, parents and payloads, and never a secret."""

from __future__ import annotations

import json
import threading

from reasoningbank.trajectory import Event, Recorder, Trajectory


def test_events_are_ordered_and_know_their_parent() -> None:
    recorder = Recorder()
    code = recorder.add("code", {"code": "x"})
    call = recorder.add("tool_call", {"tool": "find"}, parent=code)
    recorder.add("tool_result", {"result": 1}, seconds=0.5, parent=call)
    events = recorder.trajectory().events
    assert [e.index for e in events] == [0, 1, 2]
    assert [e.parent for e in events] == [None, 0, 1]
    assert events[2].seconds == 0.5


def test_long_payloads_are_stored_once() -> None:
    recorder = Recorder()
    text = "x" * 5_000
    for _ in range(3):
        recorder.add("tool_result", {"result": {"rows": [text]}})
    trajectory = recorder.trajectory()
    assert list(trajectory.payloads.values()) == [text]
    assert trajectory.resolve(trajectory.events[2].data) == {"result": {"rows": [text]}}


def test_secrets_are_redacted_wherever_they_stand() -> None:
    recorder = Recorder(redact=["sk-123"])
    index = recorder.add("lm_call", {"messages": [{"content": "key sk-123 " + "y" * 900}]})
    recorder.extend(index, {"response": "sk-123"})
    assert "sk-123" not in json.dumps(recorder.trajectory().to_json())


def test_json_round_trip() -> None:
    recorder = Recorder()
    recorder.add("code", {"code": "z" * 900})
    before = recorder.trajectory()
    assert Trajectory.from_json(json.loads(json.dumps(before.to_json()))) == before


def test_extending_an_event_keeps_what_it_had() -> None:
    recorder = Recorder()
    index = recorder.add("code", {"code": "1"})
    recorder.extend(index, {"output": "2"}, seconds=1.0)
    event = recorder.trajectory().events[0]
    assert (event.data, event.seconds) == ({"code": "1", "output": "2"}, 1.0)


def test_threads_do_not_lose_events() -> None:
    recorder = Recorder()
    threads = [
        threading.Thread(target=lambda: [recorder.add("code", {"c": i}) for i in range(200)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.index for e in recorder.trajectory().events] == list(range(800))


def test_a_watcher_gets_each_event_whole_and_redacted() -> None:
    seen: list[Event] = []
    recorder = Recorder(redact=["sk-123"], watch=seen.append)
    index = recorder.add("code", {"code": "sk-123 " + "z" * 900})
    recorder.extend(index, {"output": "done"}, seconds=2.0)
    assert [event.index for event in seen] == [0, 0]
    assert seen[0].data == {"code": "[redacted] " + "z" * 900}
    assert (seen[1].data["output"], seen[1].seconds) == ("done", 2.0)
    # What is stored refers to the long text all the same.
    assert "$ref" in recorder.trajectory().events[0].data["code"]
