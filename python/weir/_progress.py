"""Progress by tqdm, where that is installed."""

from __future__ import annotations

import warnings
from typing import Any


class Progress:
    """A bar at a time."""

    def __init__(self, quiet: bool) -> None:
        self._bar: Any = None
        self._title = ""
        self._make = None if quiet else _tqdm()

    def reached(self, title: str, done: int, of: int) -> None:
        if self._make is None:
            return
        if self._bar is None or title != self._title or done < self._bar.n:
            self.end()
            self._bar, self._title = self._make(desc=title, total=of), title
        self._bar.total = of
        self._bar.update(done - self._bar.n)

    def end(self, whole: bool = True) -> None:
        """The last steps end with the verb, and some are not needed: a bar that is not full looks like a failure."""
        if self._bar is not None:
            if whole:
                self._bar.update(self._bar.total - self._bar.n)
            self._bar.close()
            self._bar = None


def _tqdm() -> Any:
    try:
        with warnings.catch_warnings():
            # It says that widgets are missing, and draws text.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm
