"""The documentation builds as a site, with links checked, and asks nothing from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OUTSIDE_DOCS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "experiments").glob("*.md"))]


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(
        [*command, "-f", str(root / "mkdocs.yml"), "-d", str(site)],
        capture_output=True, text=True, check=False, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README"}
    assert {name for name in pages if not (site / f"{name}.html").is_file()} == set()
    # Pages link to files outside `docs/`; these are in the site too.
    log = (site / "repository" / "experiments" / "LOG.html").read_text(encoding="utf-8")
    assert "2026-11-22: the gate of memory on UniProt" in log
    assert 'href="repository/experiments/LOG.html"' in (site / "results.html").read_text("utf-8")


def test_the_order_is_that_of_the_readme(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    nav = front.partition("md-nav--primary")[2].partition("md-content")[0]
    order = [nav.index(f'href="{name}.html"') for name in ("results", "related", "house", "api")]
    assert order == sorted(order)


def test_it_asks_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"<(?:script|img|iframe|link)[^>]*\b(?:src|href)=\"?(?:https?:)?//[^>]*>")
    found = {
        hit
        for page in site.rglob("*.html")
        for hit in loads.findall(page.read_text(encoding="utf-8"))
        if 'rel="canonical"' not in hit
    }
    assert found == set()


@pytest.mark.parametrize("link", ["nowhere.md", "../nowhere.txt", "corpus.md#nowhere"])
def test_a_link_that_leads_nowhere_fails(link: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    for name in ("scripts", "experiments", "ontology", "notebooks"):
        (tmp_path / name).symlink_to(ROOT / name)
    with (tmp_path / "docs" / "related.md").open("a", encoding="utf-8") as page:
        page.write(f"\n[there]({link})\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    (warning,) = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert link in warning


@pytest.mark.parametrize("page", OUTSIDE_DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_pages_outside_docs_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)\s#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
