"""Exceptions by the command's exit codes."""

from __future__ import annotations

from typing import Any


class WeirWarning(UserWarning):
    """What makes figures less than trustworthy; the command writes it to standard error."""


class _Ended:
    code: int
    run: Any

    def _of(self, code: int, run: Any) -> "_Ended":
        self.code, self.run = code, run
        return self


class Error(_Ended, Exception):
    """A verb did not do all it was asked to. The text is that of the command.

    ``code`` is the command's exit code. ``run`` is what was measured until then, or None.
    """

    code = 1
    run = None


class Usage(Error):
    """Exit code 2: the request was wrong, an argument or a file it names."""


class Lacking(Error):
    """Exit code 3: the machine lacks a capability that the request needs."""


class IllegalState(Error):
    """Exit code 4: a check found what must not be, which ``run`` has: a state of memory, a page, a figure."""


class CommandError(Error):
    """A command that was run failed with the exit code ``code``."""


class Interrupted(_Ended, KeyboardInterrupt):
    """Ctrl-C: what was measured is kept, and is in ``run``."""

    code = 1
    run = None


# The command says these by its exit code alone.
_SILENT = {4: "a check found what must not be"}
_BY_CODE = {1: Error, 2: Usage, 3: Lacking, 4: IllegalState}


def of(code: int, message: str, run: Any = None) -> BaseException:
    """The exception of an exit code. Of a command that failed the command itself has spoken."""
    if not message.strip() and code not in _SILENT:
        return CommandError(f"the command that was run failed: exit code {code}")._of(code, run)
    return _BY_CODE.get(code, CommandError)(message.rstrip() or _SILENT[code])._of(code, run)
