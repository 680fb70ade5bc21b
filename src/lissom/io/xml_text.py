"""XML text to elements that know their lines. Nothing in a text is executed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import final
from xml.parsers import expat

import numpy as np

from lissom.errors import ModelError


@final
@dataclass(frozen=True, eq=False)
class Element:
    """One element of an XML file.

    Args:
        source: name of the file. line: where it begins. tag, given: its name and its attributes.
        inside: the elements in it. text: pieces of the text in it.
    """

    source: str
    line: int
    tag: str
    given: dict[str, str]
    inside: list[Element] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The element in words: joint 'elbow'."""
        name = self.given.get("name")
        return self.tag if name is None else f"{self.tag} {name!r}"

    def error(self, message: str) -> ModelError:
        """A ModelError that names the file, the line and the element."""
        return ModelError(f"{self.source}, line {self.line}: {self.title}: {message}")

    def all(self, tag: str) -> Iterator[Element]:
        """The elements of a name directly inside."""
        return (element for element in self.inside if element.tag == tag)

    def find(self, tag: str) -> Element | None:
        """The only element of a name directly inside; None where there is none."""
        found = list(self.all(tag))
        if len(found) > 1:
            raise found[1].error(f"stands twice in {self.title}")
        return found[0] if found else None

    def need(self, tag: str) -> Element:
        """The only element of a name directly inside."""
        found = self.find(tag)
        if found is None:
            raise self.error(f"must hold <{tag}>")
        return found

    def attribute(self, name: str) -> str:
        """A text that must be given."""
        if not self.given.get(name, "").strip():
            raise self.error(f"the attribute {name!r} is required")
        return self.given[name].strip()

    def numbers(self, name: str, count: int, default: tuple[float, ...] | None = None) -> np.ndarray:
        """So many finite numbers; without a default they must be given."""
        if default is not None and name not in self.given:
            return np.array(default, dtype=np.float64)
        words = self.attribute(name).split()
        try:
            out = [float(word) for word in words]
        except ValueError:
            out = []
        if len(out) != count or not all(map(isfinite, out)):
            many = "a finite number" if count == 1 else f"{count} finite numbers"
            raise self.error(f"the attribute {name!r} must be {many} (got {self.given[name]!r})")
        return np.array(out)

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number; without a default it must be given."""
        return float(self.numbers(name, 1, None if default is None else (default,))[0])


def parse_xml(raw: bytes, name: str) -> Element:
    """The outermost element of an XML text.

    Raises:
        ModelError: the file, the line and what is wrong with the syntax.
    """
    parser, open_elements, roots = expat.ParserCreate(), [], []

    def start(tag: str, given: dict[str, str]) -> None:
        element = Element(name, parser.CurrentLineNumber, tag, given)
        (open_elements[-1].inside if open_elements else roots).append(element)
        open_elements.append(element)

    def text(piece: str) -> None:
        if open_elements:
            open_elements[-1].text.append(piece)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: open_elements.pop()
    parser.CharacterDataHandler = text
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        why = expat.errors.messages[error.code]
        raise ModelError(f"{name}, line {error.lineno}: the XML is broken or cut off: {why}") from None
    except (ValueError, LookupError) as error:  # encodings that it does not know
        raise ModelError(f"{name}, line {parser.CurrentLineNumber}: the XML cannot be read ({error})") from None
    return roots[0]
