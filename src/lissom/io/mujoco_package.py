"""MuJoCo as an optional package, and what it says while it reads a file."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lissom.errors import ModelError


def mujoco_package(name: str) -> Any:
    """MuJoCo, for a file.

    Raises:
        ModelError: it is not installed.
    """
    try:
        import mujoco
    except ImportError:
        raise ModelError(f"{name}: needs MuJoCo's reader: pip install 'lissom[mjcf]'") from None
    return mujoco


@contextmanager
def told(mujoco: Any, name: str) -> Iterator[None]:
    """Have the log say what MuJoCo warns of, instead of letting it write MUJOCO_LOG.TXT into the user's folder; a
    handler of the user's stays."""
    if mujoco.get_mju_user_warning() is not None:
        yield
        return
    said: list[str] = []
    mujoco.set_mju_user_warning(said.append)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)
    for text in said:
        logging.getLogger("lissom").warning("%s: MuJoCo warns: %s", name, " ".join(text.split()))
