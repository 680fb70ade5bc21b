"""Ctrl-C at a given moment, for tests of the state that it leaves."""

from contextlib import contextmanager


def press_at(monkeypatch, module, count):
    """Let the bar of a module of lissom raise KeyboardInterrupt when told for the count-th time, over all bars."""
    told = [0]

    @contextmanager
    def bar(*_, **__):
        def advance(*_):
            told[0] += 1
            if told[0] == count:
                raise KeyboardInterrupt

        yield advance

    monkeypatch.setattr(f"lissom.{module}.progress_bar", bar)
