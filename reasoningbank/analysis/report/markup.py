"""HTML that cannot be broken by what it shows: everything is escaped unless it is `Html`."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

__all__ = ["Html", "element", "joined", "plain"]

#: What HTML cannot hold, even escaped: controls, halves of surrogate pairs, non-characters.
UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

#: Elements that have no content and no end.
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def plain(value: object) -> str:
    """Return a value as text that HTML can hold; what it cannot becomes U+FFFD.

    Examples:
        >>> plain("a\\ud800b\\x00")
        'a\ufffdb\ufffd'
    """
    return UNFIT.sub("\ufffd", str(value))


def escaped(value: object) -> str:
    """Return a value for use in HTML, between tags or in a quoted attribute."""
    return value if isinstance(value, Html) else html.escape(plain(value), quote=True)


def joined(parts: Iterable[object]) -> Html:
    """Return parts one after another; those that are not `Html` are escaped."""
    return Html("".join(escaped(part) for part in parts))


def element(name: str, *children: object, **attributes: object) -> Html:
    """Return an element.

    Args:
        name: Its tag.
        children: What it holds; escaped unless `Html`. None is left out.
        attributes: Its attributes; ``class_`` is ``class``, ``aria_label`` is ``aria-label``.
            True gives an attribute without a value; None and False leave it out.

    Examples:
        >>> element("p", "a < b", element("b", "!"), class_='"x"')
        '<p class="&quot;x&quot;">a &lt; b<b>!</b></p>'
        >>> element("p", "</script><script>alert(1)</script>")
        '<p>&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;</p>'
        >>> element("input", disabled=True, value=None)
        '<input disabled>'
    """
    said = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escaped(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Html(f"<{name}{said}>")
    inner = joined(child for child in children if child is not None)
    return Html(f"<{name}{said}>{inner}</{name}>")
