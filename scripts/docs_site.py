"""Hooks of `mkdocs.yml`: the order of the pages, and files that lie outside `docs/`.

The order is that of the links in `docs/README.md`. A file outside `docs/` that a page links to is
copied into the site, and so are the files that it links to in turn.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)")
#: Where files from outside `docs/` lie in the site.
OUTSIDE = "repository"


def on_config(config: Any) -> Any:
    """Put the pages in the order in which `docs/README.md` links to them."""
    text = Path(config.docs_dir, "README.md").read_text(encoding="utf-8")
    pages = dict.fromkeys(one for one in LINK.findall(text) if not one.startswith("../"))
    config.nav = ["README.md", *(one for one in pages if one.endswith(".md"))]
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the files outside `docs/` that pages link to."""
    root = Path(config.docs_dir).parent
    waiting = [(place, f"docs/{place}") for place in list(files.src_uris)]
    while waiting:
        _, source = waiting.pop()
        if not source.endswith(".md"):
            continue
        text = (root / source).read_text(encoding="utf-8")
        for target in (_target(source, link) for link in LINK.findall(text)):
            place = _place(target)
            if (root / target).is_file() and files.get_file_from_path(place) is None:
                path = str(root / target)
                files.append(File.generated(config, place, abs_src_path=path))
                waiting.append((place, target))
    return files


def on_page_markdown(markdown: str, *, page: Any, files: Files, **_: Any) -> str:
    """Turn links to files outside `docs/` into links to their copies."""
    place = page.file.src_uri
    outside = place.startswith(f"{OUTSIDE}/")
    source = place.removeprefix(f"{OUTSIDE}/") if outside else f"docs/{place}"

    def moved(link: re.Match[str]) -> str:
        there = _place(_target(source, link[1]))
        known = files.get_file_from_path(there) is not None
        return posixpath.relpath(there, posixpath.dirname(place) or ".") if known else link[1]

    return LINK.sub(moved, markdown)


def _target(source: str, link: str) -> str:
    """Return the path in the repository of what a file there links to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _place(path: str) -> str:
    """Return the path in the site of a file of the repository."""
    inside = path.removeprefix("docs/")
    return inside if inside != path else f"{OUTSIDE}/{path}"
