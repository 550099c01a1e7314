"""A figure as inline SVG that fits the page it stands on.

Text stays text, in the page's own font and colour; ids are unique; a screen reader finds a title
and a description; nothing in it reaches out of it. What a page may set:

- ``color`` of the figure or of what holds it: text, axes and guides follow (``currentColor``);
- ``--figure-1`` … ``--figure-6``: the data colours, e.g. lighter ones in the dark;
- ``.rb-figure``: the class of every figure. It takes the width there is, between its natural
  width and two thirds of it; put it into a box with ``overflow-x: auto`` for narrow screens.
"""

from __future__ import annotations

import hashlib
import io
import re
import threading
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.figure import Figure

from reasoningbank.analysis.figures.chart import COLOURS, INK, Chart

__all__ = ["svg"]

# The SVG writer reads global settings; they are changed for the length of one drawing, and two
# threads that did so at once could leave each other's behind.
_DRAWING = threading.Lock()

_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FAMILY = re.compile(r"font-family:[^;]*")
_SHORTHAND = re.compile(r"font:\s*(?:italic\s+)?(?:(bold|\d{3})\s+)?([\d.]+px)[^;]*")
_NO_TURN = re.compile(r"rotate\(-?0(?:\.0*)? [^)]*\)")


def svg(figure: Figure, *, prefix: str | None = None) -> str:
    """Return a figure as an ``<svg>`` element to be put into HTML.

    Args:
        figure: A figure of this room, or any other of matplotlib.
        prefix: What every id begins with; by default a hash of the drawing, so that two
            figures on one page never share an id. The same figure twice needs two prefixes.

    Examples:
        >>> chart = Chart("Nothing", height=1)
        >>> chart.description = "An empty figure."
        >>> text = svg(chart)
        >>> text.startswith("<svg"), "<title" in text, "An empty figure." in text
        (True, True, True)
    """
    with _DRAWING, mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "reasoningbank"}):
        buffer = io.StringIO()
        if isinstance(figure, Chart):
            figure.settle()
        figure.savefig(buffer, format="svg", facecolor="none", metadata={"Date": None})
    root = ElementTree.fromstring(buffer.getvalue())
    title = figure.title if isinstance(figure, Chart) else str(figure.get_label())
    description = figure.description if isinstance(figure, Chart) else ""
    digest = hashlib.sha256(f"{title}{description}".encode() + ElementTree.tostring(root))
    mark = prefix if prefix is not None else f"f{digest.hexdigest()[:10]}"
    _slim(root)
    _rename(root, mark)
    _gather(root)
    for element in root.iter():
        _style(element)
    _head(root, mark, title, description)
    ElementTree.register_namespace("", _SVG.strip("{}"))
    return _themed(ElementTree.tostring(root, encoding="unicode"))


def _slim(root: ElementTree.Element) -> None:
    """Drop what a page has no use for: metadata, sheets of rules that would leak, white space."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}metadata":
                parent.remove(child)
            elif child.tag == f"{_SVG}defs":
                for rules in child.findall(f"{_SVG}style"):
                    child.remove(rules)
    # Innermost first, so that a group that held only empty groups goes as well.
    for parent in reversed(list(root.iter())):
        for child in list(parent):
            if child.tag in {f"{_SVG}g", f"{_SVG}defs"} and not len(child):
                parent.remove(child)
    for element in root.iter():
        element.tail = None
        if element.tag != f"{_SVG}text":
            element.text = None
        if "d" in element.attrib:
            element.set("d", " ".join(element.attrib["d"].split()))
        turned = element.get("transform", "")
        if _NO_TURN.fullmatch(turned):
            del element.attrib["transform"]


def _rename(root: ElementTree.Element, mark: str) -> None:
    """Keep only ids that are referred to, each with the figure's own mark."""
    used: set[str] = set()
    for element in root.iter():
        used.update(*(_REFERENCE.findall(value) for value in element.attrib.values()))
        used.add(element.get(_LINK, "#")[1:])
    for element in root.iter():
        name = element.attrib.pop("id", None)
        if name in used:
            element.set("id", f"{mark}-{name}")
        link = element.attrib.pop(_LINK, None)
        if link is not None:
            element.set("href", f"#{mark}-{link[1:]}")
        for key, value in element.attrib.items():
            if "url(#" in value:
                element.set(key, _REFERENCE.sub(rf"url(#{mark}-\1)", value))


def _gather(root: ElementTree.Element) -> None:
    """Say once what all marks of a group have in common, and open groups that say nothing."""
    for parent in reversed(list(root.iter())):
        styles = {child.get("style") for child in parent}
        if len(parent) > 1 and len(styles) == 1 and all(c.tag == f"{_SVG}use" for c in parent):
            parent.set("style", styles.pop() or "")
            for child in parent:
                child.attrib.pop("style", None)
        inner: list[ElementTree.Element] = []
        for child in parent:
            open_up = child.tag == f"{_SVG}g" and not child.attrib
            inner.extend(child if open_up else (child,))
        parent[:] = inner


def _style(element: ElementTree.Element) -> None:
    style = element.get("style")
    if style and "font" in style:
        style = _SHORTHAND.sub(_longhand, style)
        element.set("style", _FAMILY.sub("font-family: inherit", style))


def _longhand(found: re.Match[str]) -> str:
    weight = f"font-weight: {found[1]}; " if found[1] else ""
    return f"{weight}font-size: {found[2]}; font-family: inherit"


def _head(root: ElementTree.Element, mark: str, title: str, description: str) -> None:
    """Let the figure scale, and say what it is."""
    view = root.get("viewBox", "0 0 100 100")
    # A point of the drawing is a point of the page: 4/3 pixels.
    width = round(float(view.split()[2]) * 4 / 3)
    root.attrib.clear()
    root.attrib.update(
        {
            "class": "rb-figure",
            "role": "img",
            "aria-labelledby": f"{mark}-title",
            "aria-describedby": f"{mark}-desc",
            "viewBox": view,
            "stroke-linejoin": "round",
            "stroke-linecap": "butt",
            "style": f"width: 100%; max-width: {width}px; min-width: {width * 2 // 3}px; "
            "height: auto; overflow: visible",
        }
    )
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{_SVG}{tag}", {"id": f"{mark}-{tag}"})
        element.text = text
        root.insert(place, element)


def _themed(text: str) -> str:
    text = text.replace(INK, "currentColor")
    for number, colour in enumerate(COLOURS, 1):
        text = text.replace(colour, f"var(--figure-{number}, {colour})")
    return text
