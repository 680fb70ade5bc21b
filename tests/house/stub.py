"""What type checkers and editors read instead of the table of public names: python tests/house/stub.py writes it."""

from pathlib import Path

import lissom as ls

PATH = Path(ls.__file__).with_suffix(".pyi")


def names():
    """Every public name, those of namespaces with these in front."""
    spaces = [(space, own) for space, homes in ls._NAMESPACES.items() for own in homes.values()]
    return sorted([*ls.__all__, *(f"{space}.{name}" for space, own in spaces for name in own)])


def content():
    """An import of each public name, in the order of the table."""
    lines = [
        '"""Public names of the package, for type checkers and editors; written by `python tests/house/stub.py`."""',
        "",
    ]
    lines += [f"from lissom import {space} as {space}" for space in sorted(ls._NAMESPACES)]
    for module, own in sorted(ls._PUBLIC.items()):
        lines += [f"from lissom.{module} import {name} as {name}" for name in sorted(own)]
    return "\n".join([*lines, "", "__version__: str", "__all__: list[str]", ""])


if __name__ == "__main__":
    PATH.write_text(content(), encoding="utf-8")
    print(f"wrote {PATH}")
