"""How docstrings of lissom become pages of the reference: an extension of griffe, which mkdocstrings loads.

The sections of our docstrings hold several entries on a line where these are short. Here each becomes an item of a
list, and what stands in backticks and is public becomes a link. Public names, which `lissom` loads on first use, are
made known as its members.
"""

import ast
import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(Args|Returns|Raises|Fields|Attributes)\b([^:\n]*):$")
_ENTRY = re.compile(r"(?:^|(?<=\n)|(?<=[.;,\])][ \n]))((?:\*{0,2}[A-Za-z_]\w*)(?:, \*{0,2}[A-Za-z_]\w*)*)(?:: |;)")
_FOOT = re.compile(r"^(Accuracy|Cost|Source|Sources|Law|Units): ")
_CODE = re.compile(r"(?<![`\[])`([A-Za-z_]\w*(?:\.\w+)?)`(?!`)")


class PublicNames(griffe.Extension):
    """Adds the public names to the package and rewrites docstrings as Markdown."""

    def __init__(self) -> None:
        self.public: dict[str, str] = {}

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Called once all modules of the package are read."""
        if pkg.name != "lissom":
            return
        table = ast.literal_eval(str(pkg["_PUBLIC"].value))
        self.public = {name: f"lissom.{home}.{name}" for home, names in table.items() for name in names}
        for space, homes in ast.literal_eval(str(pkg["_NAMESPACES"].value)).items():
            self.public |= {f"{space}.{name}": f"lissom.{home}.{name}" for home, own in homes.items() for name in own}
        for path in self.public.values():
            self._rewrite(pkg[path.removeprefix("lissom.")])
        for name, path in self.public.items():
            space, _, own = name.rpartition(".")
            parent = pkg[space] if space else pkg
            parent.set_member(own, griffe.Alias(own, path, parent=parent))

    def _rewrite(self, found: griffe.Object) -> None:
        names = {name for name in found.members if not name.startswith("_")} if found.is_class else set()
        if found.is_function or found.is_class:
            names |= {p.name.lstrip("*") for p in getattr(found, "parameters", ())}
        if found.docstring:
            found.docstring.value = markdown(found.docstring.value, names, self.public, found.name)
        if found.is_class:
            for member in found.members.values():
                if not member.is_alias:
                    self._rewrite(member)


def markdown(text: str, names: set[str], public: dict[str, str], own: str) -> str:
    """A docstring as Markdown: its sections as lists, its public names as links."""
    out: list[str] = []
    section: list[str] = []
    kind = ""
    for line in [*text.splitlines(), "end"]:
        head = _SECTION.match(line)
        inside = bool(kind) and (line.startswith(" ") or not line.strip())
        if kind and not inside:
            out += ["", *entries(kind, section, names), ""]
            kind = ""
        if head:
            kind, section = head[1], []
            title = {"Args": "Arguments", "Attributes": "Fields"}.get(kind, kind)
            out += ["", f"**{title}**{head[2]}"]
        elif inside:
            section.append(line)
        else:
            out += ["", _FOOT.sub(r"**\1**: ", line)] if _FOOT.match(line) else [line]
    return _CODE.sub(lambda m: _link(m[1], public, own), "\n".join(out[:-1]).strip())


def entries(kind: str, lines: list[str], names: set[str]) -> list[str]:
    """The entries of a section as items of a list; the section of returned values is one paragraph."""
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    body = "".join(("\n" if line[margin : margin + 1].strip() else " ") + line.strip() for line in lines).strip()
    if kind == "Returns":
        return [body]
    starts = [m for m in _ENTRY.finditer(body) if _is_entry(kind, m, names)]
    if not starts:
        return [body]
    ends = [*(m.start() for m in starts[1:]), len(body)]
    first = [body[: starts[0].start()].strip(), ""] if starts[0].start() else []
    return first + [_item(m[1], body[m.end() - (m[0][-1] == ";") : end]) for m, end in zip(starts, ends)]


def _is_entry(kind: str, match: re.Match[str], names: set[str]) -> bool:
    """At the start of a line every word before a colon is an entry; within a line only a name that there is."""
    every = [name.lstrip("*") for name in match[1].split(", ")]
    if kind == "Raises":
        return all(name[0].isupper() for name in every)
    at_start = match.start() == 0 or match.string[match.start() - 1] == "\n"
    return at_start or all(name in names for name in every)


def _item(head: str, said: str) -> str:
    marked = ", ".join(f"`{name}`" for name in head.split(", "))
    said = " ".join(said.split())
    return f"- {marked}{said}" if said.startswith(";") else f"- {marked}: {said}"


def _link(name: str, public: dict[str, str], own: str) -> str:
    return f"[`{name}`][lissom.{name}]" if name in public and name != own else f"`{name}`"
