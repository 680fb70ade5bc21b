"""The manual tells the truth: its robot files load, its commands work, its pages build."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import warnings
from pathlib import Path

import pytest
from families import FAMILIES
from house import stub
from house.pages import PAGES, ROOT, blocks, with_blocks

import lissom as ls
from lissom.cli.main import main
from lissom.robot.fields import members

REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
KINDS = {"python", "yaml", "bash", "console", "text"}


@pytest.mark.parametrize("page", with_blocks("yaml"))
def test_robot_files_load_and_build(page, folder):
    """Purpose: every robot file shown is complete and builds."""
    for line, text in blocks(page, "yaml"):
        path = folder / f"{page.stem}_{line}.yaml"
        path.write_text(text, encoding="utf-8")
        assert ls.load_robot(path).build().nv > 0


@pytest.mark.parametrize("page", with_blocks("bash"))
def test_commands_work(page, folder, small_pictures, capsys, monkeypatch):
    """Purpose: every command shown succeeds and writes the files that the page names."""
    monkeypatch.setattr("lissom.cli.computing._LEAST_TIME", 0.01)
    for _, text in blocks(page, "bash"):
        for command in text.splitlines():
            program, *arguments = shlex.split(command)
            assert program == "lissom" and main(arguments) == 0
    for written in re.findall(r"^wrote (\S+)$", capsys.readouterr().out, re.MULTILINE):
        assert Path(written).stat().st_size > 0


def test_blocks_are_of_known_kinds():
    """Purpose: no code hides from these tests under another name."""
    for page in PAGES:
        fences = re.findall(r"^```(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) % 2 == 0 and set(fences[::2]) <= KINDS, page


def test_every_public_name_is_in_the_manual():
    """Purpose: a reader can find every public function and class, besides in the reference."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page not in REFERENCE)
    missing = [name for name in stub.names() if not re.search(rf"\b{re.escape(name)}\b", text)]
    assert not missing


def test_every_public_name_is_in_the_reference_once():
    """Purpose: the reference holds all public names, each on one page, and nothing else."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE)
    listed = re.findall(r"^::: lissom\.([\w.]+)$", text, re.MULTILINE)
    missing = set(stub.names()) - set(listed)
    assert not missing, f"write '::: lissom.NAME' for {sorted(missing)} on a page of docs/reference"
    assert sorted(listed) == stub.names()


@pytest.mark.parametrize("name", FAMILIES)
def test_tables_of_the_manual_hold_every_class_of_a_family(name):
    """Purpose: each class of a family has a row of its own or shares one in a table, and the table has each of its
    keys."""
    text = (ROOT / "docs" / "robot_files.md").read_text(encoding="utf-8")
    rows = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    for cls in members(FAMILIES[name]):
        assert any(f"`{cls.__name__}" in row.split("|")[1] for row in rows), f"{cls.__name__} has no row in a table"
        untold = [field.name for field in dataclasses.fields(cls) if f"`{field.name}`" not in text]
        assert not untold, f"robot_files.md does not tell {untold} of {cls.__name__}"


def test_gallery_lists_the_examples():
    """Purpose: the gallery names every script and robot file there is, and no other."""
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(examples/[\w/]+\.(?:py|yaml))`", text))
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".yaml")}
    assert listed == there


@pytest.mark.slow  # `.ci/run` builds the manual
def test_the_manual_builds_strictly(tmp_path, monkeypatch):
    """Purpose: no broken link, missing page or page outside the table of contents; docstrings become lists."""
    pytest.importorskip("mkdocs")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    monkeypatch.chdir(ROOT)  # where the extension of the reference is looked for
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of mkdocs's own dependencies
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True))
    assert (tmp_path / "index.html").exists()
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (tmp_path / "reference").glob("*.html")}
    anchors = re.findall(r'<h3 id="lissom\.([\w.]+)"', "".join(pages.values()))
    assert sorted(anchors) == stub.names()
    assert re.search(r"<li>\s*(<p>)?<code>residual</code>: largest absolute entry", pages["statics"])
    assert re.search(r'href="dynamics\.html#lissom\.assemble"><code>assemble</code>', pages["statics"])
    tutorial = (tmp_path / "tutorial.html").read_text(encoding="utf-8")
    assert 'href="reference/statics.html#lissom.solve_statics"><code>solve_statics</code>' in tutorial
    _check_search_from_files(
        tmp_path, {"tutorial.html": tutorial} | {f"reference/{k}.html": v for k, v in pages.items()}
    )


def _check_search_from_files(site, pages):
    """The index is a script, since a page from a file may not fetch; what runs the search comes along, and no page asks
    another server."""
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8").removeprefix("var __index = ")
    assert any(entry["location"].startswith("tutorial.html") for entry in json.loads(index)["docs"])
    for name, text in pages.items():
        scripts = re.findall(r'<script[^>]*\bsrc="([^"]+)"', text)
        shim = [src for src in scripts if "iframe-worker" in src]
        assert len(shim) == 1 and ((site / name).parent / shim[0]).is_file()
        assert not [src for src in scripts if "//" in src]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_paths_of_the_source_exist(page):
    """Purpose: files and rooms that pages for developers name are there, seen from the root or the package."""
    named = re.findall(
        r"`([\w./]+\.(?:py|h))`|^(src/lissom/\w+/)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE
    )
    paths = {file or folder for file, folder in named}
    assert paths
    missing = [path for path in paths if not ((ROOT / path).exists() or (ROOT / "src/lissom" / path).exists())]
    assert not [path for path in missing if path != "terms.py"]


def test_rooms_of_the_architecture_are_those_of_the_package():
    """Purpose: the table of rooms in docs/architecture.md names every folder of the package once."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    rooms = [room for row in rows for room in re.findall(r"`(\w+)`", row)]
    folders = {path.parent.name for path in (ROOT / "src" / "lissom").glob("*/__init__.py")}
    assert sorted(rooms) == sorted(folders)


def test_the_version_to_cite_is_the_version():
    """Purpose: CITATION.cff names the version of the package."""
    assert f"\nversion: {ls.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
