"""Examples as modules, for tests of their numbers."""

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path

import matplotlib

EXAMPLES = Path(__file__).parents[2] / "examples"


@lru_cache(maxsize=2)  # of one file of tests; what modules keep would add up
def example(name):
    """An example as a module, known by its name while its classes are made; its pictures need no display."""
    matplotlib.use("Agg")
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(path):
    """Whether a file holds a picture."""
    picture = path.read_bytes()
    return picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) > 10_000
