"""How fast those who look on keep up: a browser without a graphics card draws a picture in a second, and what is sent
meanwhile only makes it later."""

from __future__ import annotations

import threading
import time
from typing import Any, final

_QUICK = 0.1  # a lag that nobody minds [s]
_PATIENCE, _PAUSE = 10.0, 0.3  # [s]


@final
class Lookers:
    """The browsers at a server of viser, each of which is asked for an answer now and then.

    Args:
        ends: says when to stop asking.
    """

    def __init__(self, server: Any, ends: threading.Event) -> None:
        self.server, self.ends, self.lag = server, ends, 0.0
        threading.Thread(target=self._ask, name="lissom viewer lag", daemon=True).start()

    @property
    def interval(self) -> float:
        """The least time between two pictures, so that the slowest keeps up [s]."""
        return self.lag if self.lag > _QUICK else 0.0

    def _ask(self) -> None:
        while not self.ends.wait(_PAUSE):
            answers = [self._answer(client) for client in list(self.server.get_clients().values())]
            self.lag = max(answers, default=0.0)

    def _answer(self, client: Any) -> float:
        """How long one browser takes to answer; nothing of one that has left."""
        began = time.perf_counter()
        try:
            client.local_storage.get_item("lissom", timeout=_PATIENCE)
        except TimeoutError:
            return _PATIENCE
        except RuntimeError:
            return 0.0
        return time.perf_counter() - began
