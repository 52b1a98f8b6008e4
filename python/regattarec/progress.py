"""A line that shows how an epoch goes: rewritten on a terminal, and in a notebook."""
import sys
import time
import typing

PERIOD = 0.5  # seconds between two looks


def _notebook() -> typing.Any:
    """IPython's display of a cell that can be rewritten; None outside a notebook."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display
    return display({"text/plain": ""}, raw=True, display_id=True)


class Progress:
    """`show` is None (a live line on a terminal and in a notebook only), True or False."""

    def __init__(self, show: bool | None = None) -> None:
        self._cell = None if show is False else _notebook()
        self._live = show is not False and (self._cell is not None or sys.stderr.isatty())
        self._lines = show is not False
        self._last = 0.0
        self._width = 0

    @property
    def due(self) -> bool:
        return self._live and time.monotonic() - self._last >= PERIOD

    def update(self, text: str) -> None:
        self._last = time.monotonic()
        if self._cell is not None:
            self._cell.update({"text/plain": text}, raw=True)
            return
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def line(self, text: str) -> None:
        """A line that stays."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            self._width = 0
        if self._lines:
            print(text, flush=True)
