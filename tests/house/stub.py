"""What type checkers and editors read instead of the table of public names: python tests/house/stub.py writes it."""

from pathlib import Path

import lissom as ls

PATH = Path(ls.__file__).with_suffix(".pyi")


def content():
    """An import of each public name, in the order of the table."""
    lines = [
        '"""What the package gives by name, for type checkers and editors: `python tests/house/stub.py` writes it."""',
        "",
    ]
    for module, names in sorted(ls._PUBLIC.items()):
        lines += [f"from lissom.{module} import {name} as {name}" for name in sorted(names)]
    return "\n".join([*lines, "", "__version__: str", "__all__: list[str]", ""])


if __name__ == "__main__":
    PATH.write_text(content(), encoding="utf-8")
    print(f"wrote {PATH}")
