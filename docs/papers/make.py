"""Make the pages of the papers, and the lines 'Paper: ...' of the gallery, from the table items.csv.

    python docs/papers/make.py

A row of the table is an item of a paper: its place there, what it is, how lissom stands to it (one of STATES), a page
of the manual, public names, a script or a test that shows it, our number, that of the paper, and why they differ. A
row that works leads to a page or is shown by a script or test; any other row has a reason. Our number is empty, or

- `gallery:EXAMPLE:KEY`, which a test of the examples asserts and gallery.md shows below the picture,
- `page:WORDS`, words of the page of the row,
- `table:TABLE:ROBOT`, what six_robots.md says of a robot.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent
GALLERY = DOCS / "gallery.md"
TABLE = HERE / "items.csv"
INDEX = """\
The library implements four papers. Each page lists what its paper describes, item by item: equations, algorithms,
tables, figures, statements. It says whether the item works here, works partly, is missing, or is different, with the
reason, and leads to the manual, the functions, and a script or test that shows it."""
MEASURED = DOCS / "six_robots.md"
LEGEND = """\
Each row leads from an item of the paper to the page of the manual, the functions, and a script or test that shows it.
The item works as in the paper, works partly, is missing, or is different here; then follows what differs, and why. Our
numbers are those below the pictures of the gallery, which tests assert, or those of the page. Scripts run by
`python SCRIPT`, tests by `python -m pytest -m "" TEST`, in a copy of the repository."""
FIELDS = ("paper", "item", "about", "state", "page", "names", "run", "ours", "theirs", "why")
PLACE = re.compile(r"simulation|supplement|table|figure|example|§|\(|[IVX]+\.")  # of an item, not its words
STATES = ("works", "partly", "missing", "different")
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


def measured() -> dict[str, str]:
    """What the tables of six_robots.md say of lissom, by 'TABLE:ROBOT'."""
    found = {}
    for table, block in re.findall(r"<!-- (\w+) -->\s+(.*?)\s+<!-- end -->", MEASURED.read_text("utf-8"), re.DOTALL):
        head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
        robot = ""
        for cells in lines:
            robot = cells[0] or robot
            row = dict(zip(head, cells))
            if "Newmark" not in row:
                found[f"{table}:{robot}"] = row["lissom: differences, exact"]
            elif "lissom" in cells:
                found[f"{table}:{robot}"] = f"{row['without exact Jacobian']}; {row['with']}; Newmark {row['Newmark']}"
    return found


def number(ours: str, known: dict[str, str]) -> str:
    """Our number of a row, that of the gallery with its name; empty without one."""
    kind, _, place = ours.partition(":")
    if kind == "gallery":
        return f"{place.split(':', 1)[1]}: {known[place]}"
    return measured()[place] if kind == "table" else place


def counts() -> dict[str, dict[str, int]]:
    """How many items of each paper are in each state."""
    states = {paper: [row["state"] for row in rows() if row["paper"] == paper] for paper in PAPERS}
    return {paper: {state: found.count(state) for state in STATES} for paper, found in states.items()}


def page(paper: str, known: dict[str, str]) -> str:
    """The page of a paper."""
    title, text = PAPERS[paper]
    n = counts()[paper]
    total = (
        f"Of {sum(n.values())} items {n['works']} work, {n['partly']} work partly, {n['missing']} are missing and "
        f"{n['different']} are different."
    )
    head = ("| item | what | state | where | shown by | our number | theirs |", "|---|---|---|---|---|---|---|")
    lines = [f"# {title}", "", text, "", *LEGEND.splitlines(), "", total, "", *head]
    for row in rows():
        if row["paper"] == paper:
            names = ", ".join(f"`ls.{name}`" for name in row["names"].split())
            heading = row["page"].split("#")[0].removesuffix(".md").replace("_", " ").replace("how to/", "")
            link = f"[{heading}](../{row['page']})" if heading else ""
            where = ", ".join(filter(None, (link, names)))
            state = f"{row['state']}: {row['why']}" if row["why"] else row["state"]
            shown = script(row["run"]), number(row["ours"], known), row["theirs"]
            cells = row["item"], row["about"], state, where, *shown
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def script(run: str) -> str:
    """A script or a test, and the way from a script to its picture in the gallery."""
    if not run:
        return ""
    if not run.startswith("examples/"):
        return f"`{run}`"
    card = re.search(
        rf"### ([^\n]+)\n(?:(?!###).)*\]\(gallery/{Path(run).stem}\.jpg\)", GALLERY.read_text("utf-8"), re.DOTALL
    )
    if card is None:
        return f"`{run}`"
    anchor = re.sub(r"[^\w\s-]", "", card[1]).strip().lower().replace(" ", "-")
    return f"`{run}`, [picture](../gallery.md#{anchor})"


def index() -> str:
    """The page with the counts of all papers."""
    head = [f"| paper | items | {' | '.join(STATES)} |", "|---|---|---|---|---|---|"]
    lines = [
        f"| [{PAPERS[paper][0]}]({paper}.md) | {sum(n.values())} | {' | '.join(str(n[state]) for state in STATES)} |"
        for paper, n in counts().items()
    ]
    return "\n".join(["# Papers", "", *INDEX.splitlines(), "", *head, *lines]) + "\n"


def places() -> dict[str, str]:
    """Papers and items of each example, by its name; the parts of an item, such as a figure, once."""
    found: dict[str, list[str]] = {}
    for row in rows():
        if row["run"].startswith("examples/"):
            title = PAPERS[row["paper"]][0]
            items = found.setdefault(Path(row["run"]).stem, [title])
            parts = filter(PLACE.match, re.split(r", (?!\d)", row["item"]))
            items += (part for part in parts if part not in items)
    return {name: ", ".join(items) for name, items in found.items()}


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
    (HERE / "index.md").write_text(index(), encoding="utf-8")
    GALLERY.write_text(gallery(), encoding="utf-8")


if __name__ == "__main__":
    main()
