"""Make the pages of the papers, and the lines 'Paper: ...' of the gallery, from the table items.csv.

    python docs/papers/make.py

A row of the table is an item of a paper: its place there, what it is, a page of the manual, public names, an example or
another script, our number, that of the paper, and why they differ. Our number is `gallery:EXAMPLE:KEY`, which a test of
the examples asserts and gallery.md shows below the picture, or empty.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent
GALLERY = DOCS / "gallery.md"
TABLE = HERE / "items.csv"
LEGEND = """\
Each row leads from an item of the paper to the page of the manual, the functions, and a script that runs it. Remarks in
brackets say what differs, and why. Our numbers are those below the pictures of the gallery, which tests assert."""
FIELDS = ("paper", "item", "about", "page", "names", "run", "ours", "theirs", "why")
PAPERS = {
    "pustina": (
        "Pustina 2025",
        "P. Pustina et al., 2025: bodies of any kinematics, recursive Kane equations, ten simulations.\n"
        "[Soft robots of Pustina 2025](../soft_robots.md) tells what comes out of them.",
    ),
    "boyer": (
        "Boyer 2023",
        "F. Boyer et al., 2023: implicit steps of rods and bodies on SE(3), tangent inverse dynamics, closed chains.",
    ),
    "mathew": (
        "Mathew 2025",
        "A. T. Mathew et al., 2025: rods as joints, derivatives of the recursive dynamics, six robots.",
    ),
    "sorosim": (
        "SoRoSim 2022",
        "A. T. Mathew et al., 2022: the toolbox SoRoSim, its links, twists and linkages, and applications.\n"
        "[Coming from another library](../coming_from.md) shows a first robot.",
    ),
}


def rows() -> list[dict[str, str]]:
    """The rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="|", quoting=csv.QUOTE_NONE))


def asserted() -> dict[str, str]:
    """The numbers below the pictures of the gallery, by 'EXAMPLE:KEY'."""
    found = {}
    for name, line in re.findall(
        r"\]\(gallery/(\w+)\.jpg\)\n\nAsserted: ([^\n]*)\.\n", GALLERY.read_text(encoding="utf-8")
    ):
        for part in line.split("; "):
            key, value = part.rsplit(": ", 1)
            found[f"{name}:{key}"] = value
    return found


def number(ours: str, known: dict[str, str]) -> str:
    """Our number of a row with its name; empty without one."""
    if not ours:
        return ""
    _, place = ours.split(":", 1)
    return f"{place.split(':', 1)[1]}: {known[place]}"


def page(paper: str, known: dict[str, str]) -> str:
    """The page of a paper."""
    title, text = PAPERS[paper]
    head = ("| item | what | where | run | our number | theirs |", "|---|---|---|---|---|---|")
    lines = [f"# {title}", "", text, "", *LEGEND.splitlines(), "", *head]
    for row in rows():
        if row["paper"] == paper:
            names = ", ".join(f"`ls.{name}`" for name in row["names"].split())
            heading = row["page"].split("#")[0].removesuffix(".md").replace("_", " ").replace("how to/", "")
            where = ", ".join(filter(None, (f"[{heading}](../{row['page']})", names)))
            about = f"{row['about']} ({row['why']})" if row["why"] else row["about"]
            cells = row["item"], about, where, script(row["run"]), number(row["ours"], known), row["theirs"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def script(run: str) -> str:
    """The command of a script, and the way to its picture in the gallery."""
    if not run:
        return ""
    card = re.search(
        rf"### ([^\n]+)\n(?:(?!###).)*\]\(gallery/{Path(run).stem}\.jpg\)", GALLERY.read_text("utf-8"), re.DOTALL
    )
    if card is None:
        return f"`python {run}`"
    anchor = re.sub(r"[^\w\s-]", "", card[1]).strip().lower().replace(" ", "-")
    return f"`python {run}`, [picture](../gallery.md#{anchor})"


def places() -> dict[str, str]:
    """Papers and figures of each example, by its name."""
    found: dict[str, list[str]] = {}
    for row in rows():
        if row["run"].startswith("examples/"):
            title = PAPERS[row["paper"]][0]
            items = found.setdefault(Path(row["run"]).stem, [title])
            items.append(row["item"])
    return {name: ", ".join([items[0], "; ".join(items[1:])]) for name, items in found.items()}


def gallery() -> str:
    """The gallery, with a line 'Paper: ...' below the numbers of each example of a paper."""
    text = re.sub(r"\n\nPaper: [^\n]*\n", "\n", GALLERY.read_text(encoding="utf-8"))
    for name, place in places().items():
        picture = re.compile(rf"(\]\(gallery/{name}\.jpg\)\n\nAsserted: [^\n]*\n)")
        assert picture.search(text), f"gallery.md has no picture of {name}"
        text = picture.sub(lambda found, place=place: f"{found[1]}\nPaper: {place}.\n", text)
    return text


def main() -> None:
    """Write the pages and the gallery."""
    known = asserted()
    for paper in PAPERS:
        (HERE / f"{paper}.md").write_text(page(paper, known), encoding="utf-8")
    GALLERY.write_text(gallery(), encoding="utf-8")


if __name__ == "__main__":
    main()
