"""Lead from names in the text of the manual to their places in the reference, as the pages are built.

A name in code type that is public becomes a link, wherever it stands outside of headings, code blocks and other links:
all with `ls.` in front, classes, and functions that are called or whose name could be nothing else.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from posixpath import relpath
from typing import Any

HERE = Path(__file__).parent
NAME = re.compile(r"(?<![\[`\w])`(ls\.)?([A-Za-z]\w*(?:\.\w+)?)(\([^`]*\))?`(?![\]`\w])")
SKIPPED = re.compile(r"^```.*?^```$|^#.*?$|\[[^\]]*\]\([^)]*\)", re.MULTILINE | re.DOTALL)


@lru_cache(maxsize=1)
def places() -> dict[str, str]:
    """The page of each public name."""
    found = {}
    for page in HERE.glob("*.md"):
        for name in re.findall(r"^::: lissom\.([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            found[name] = f"reference/{page.name}"
    return found


def linked(text: str, page: str) -> str:
    """A piece of a page with links."""

    def link(found: re.Match[str]) -> str:
        prefix, name, call = found.groups()
        is_clear = prefix or call or "_" in name or not name.islower()
        if name not in places() or not is_clear:
            return found[0]
        return f"[{found[0]}]({relpath(places()[name], str(Path(page).parent))}#lissom.{name})"

    return NAME.sub(link, text)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """What mkdocs calls with the text of each page."""
    where = page.file.src_uri
    if where.startswith("reference/"):
        return markdown
    pieces, end = [], 0
    for skipped in SKIPPED.finditer(markdown):
        pieces += [linked(markdown[end : skipped.start()], where), skipped[0]]
        end = skipped.end()
    return "".join(pieces) + linked(markdown[end:], where)
