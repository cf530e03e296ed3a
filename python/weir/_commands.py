"""Functions from the command's own list of commands."""

from __future__ import annotations

import functools
import inspect
import json
import keyword
import logging
import os
import shlex
import sys
import threading
import warnings
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from . import _errors, _runs, _weir
from ._progress import Progress

_log = logging.getLogger("weir")
# The request to stop is one for the process.
_turn = threading.Lock()
# A verb ran in the process of which this one is a copy, and none that it had taken is given back.
_is_cut = False
# Of shells, and what the package decides itself.
_LEFT_OUT = {"man", "completions"}
_NO_OPTION = {"format"}


def _after_fork() -> None:
    global _turn, _is_cut
    _is_cut = _is_cut or _turn.locked()
    _turn = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def python_name(name: str) -> str:
    """`read-threads` as Python has names; `as` is `as_`."""
    name = name.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def arguments(command: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The arguments of a command that a function takes, positional ones first."""
    shown = [a for a in command["arguments"] if a["id"] not in _NO_OPTION and not a["hidden"]]
    return sorted(shown, key=lambda a: not _in_order(a))


def _in_order(argument: Dict[str, Any]) -> bool:
    return argument["positional"] and not argument["last"]


def argument_name(argument: Dict[str, Any]) -> str:
    """The keyword of an argument."""
    return python_name(argument["long"] or argument["id"])


def signature(command: Dict[str, Any]) -> inspect.Signature:
    """Positional arguments by their order, and options as keywords."""
    kinds = inspect.Parameter
    parameters, keywords_follow = [], False
    for argument in arguments(command):
        name, default = argument_name(argument), False if argument["flag"] else None
        if not _in_order(argument) or keywords_follow:
            kind = kinds.KEYWORD_ONLY
        elif argument["many"]:
            kind, keywords_follow = kinds.VAR_POSITIONAL, True
        else:
            kind = kinds.POSITIONAL_OR_KEYWORD
        if kind == kinds.VAR_POSITIONAL:
            parameters.append(kinds(name, kind))
        else:
            parameters.append(kinds(name, kind, default=default))
    return inspect.Signature(parameters)


def describe(command: Dict[str, Any]) -> str:
    """The help of a command, with the names of keywords."""
    lines = [command["about"], ""]
    for argument in arguments(command):
        default = f" [default: {(argument['delimiter'] or ' ').join(argument['default'])}]" if argument["default"] and not argument["flag"] else ""
        choices = f" [one of: {', '.join(argument['choices'])}]" if argument["choices"] and not argument["flag"] else ""
        value = f" ({argument['value']})" if argument["value"] and not argument["flag"] else ""
        lines.append(f"{argument_name(argument)}{value}: {' '.join(argument['help'].split())}{default}{choices}")
    if command["after"]:
        lines += ["", "Of the command line:", "", command["after"]]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()).strip()


def words(path: Tuple[str, ...], command: Dict[str, Any], args: Iterable[Any], keywords: Dict[str, Any]) -> List[str]:
    """What a shell would give to the command."""
    known = {argument_name(a): a for a in arguments(command)}
    ordered = [a for a in arguments(command) if _in_order(a)]
    placed: Dict[str, List[str]] = {}
    for at, value in enumerate(args):
        if value is None:
            continue
        if at < len(ordered) and not ordered[at]["many"]:
            name = argument_name(ordered[at])
            placed[name] = _values(name, value)
        else:
            # One too many is the command's to refuse.
            name = argument_name(ordered[-1]) if ordered else ""
            placed.setdefault(name, []).extend(_values(name, value))
    options: List[str] = []
    last: List[str] = []
    for name, value in keywords.items():
        argument = known.get(name) or known.get(python_name(name))
        if argument is None:
            # The command says what it has instead.
            long = "--" + name.rstrip("_").replace("_", "-")
            without = value is None or isinstance(value, bool)
            options += [long] if without else [f"{long}={','.join(_values(name, value))}"]
        elif value is None or value is False and (argument["flag"] or argument["optional_value"]):
            continue
        elif argument["last"]:
            last = ["--", *_values(name, value)]
        elif argument["positional"]:
            if argument_name(argument) in placed:
                raise TypeError(f"{name} is given twice: by its place and by its name")
            placed[argument_name(argument)] = _values(name, value)
        else:
            options += _option(argument, value)
    # The groups stand before their subcommand.
    in_order = [word for a in ordered for word in placed.pop(argument_name(a), [])]
    rest = [word for more in placed.values() for word in more]
    return [*path, *in_order, *rest, *options, *last]


def _option(argument: Dict[str, Any], value: Any) -> List[str]:
    name = f"--{argument['long']}" if argument["long"] else f"-{argument['short']}"
    if argument["flag"]:
        if isinstance(value, str):
            raise TypeError(f"{argument_name(argument)} is on or off; write {argument_name(argument)}=True or leave it out, not {value!r}")
        return [name] if value else []
    if value is True and argument["optional_value"]:
        return [name]
    values = _values(argument_name(argument), value)
    if argument["delimiter"]:
        return [f"{name}={argument['delimiter'].join(values)}"]
    if argument["together"] and len(values) > 1:
        return [name, *values]
    return [f"{name}={one}" for one in values]


def _values(option: str, value: Any) -> List[str]:
    """One value or several as words. None at all would be as if the option were left out, which asks for everything."""
    found = list(_words(option, value))
    if not found:
        raise ValueError(f"{option} is an empty list; give it a value, or leave it out")
    return found


def _words(option: str, value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, (str, bytes, os.PathLike)):
        yield os.fsdecode(value)
    elif isinstance(value, _runs.Run):
        yield str(value.id)
    elif value is None or isinstance(value, (Mapping, _runs.Document, bytearray)):
        what = "dictionary" if isinstance(value, Mapping) else type(value).__name__
        what = "document; write its .json into a file" if isinstance(value, _runs.Document) else what
        raise TypeError(f"{option} takes a value or a list of values, and no {what}: {value!r}")
    elif isinstance(value, Iterable):
        for one in value:
            yield from _words(option, one)
    else:
        yield _runs.word(value)


def call(path: Tuple[str, ...], command: Dict[str, Any], args: Iterable[Any], keywords: Dict[str, Any]) -> Any:
    """Runs a verb in this process."""
    if "format" in keywords:
        raise TypeError("format is of the command line; here a document has .json and .table(), and a run .text too")
    if keywords.get("engine"):
        # What workers run, with the Python that runs Ray.
        os.environ.setdefault("WEIR_WORKER", shlex.join([sys.executable, "-m", "weir"]))
        os.environ.setdefault("WEIR_PYTHON", sys.executable)
    if _is_cut:
        raise _errors.of(1, "this process was forked while a verb ran; begin a new one, such as by multiprocessing's `spawn`")
    typed = words(path, command, args, keywords)
    progress = Progress(bool(keywords.get("quiet")))

    def said(line: str) -> None:
        warning = line.partition("weir: warning: ")[2]
        if warning:
            warnings.warn(warning, _errors.WeirWarning, stacklevel=4)
        else:
            _log.info("%s", line)

    failed = True
    try:
        with _turn:
            ran = _weir.run(typed, said, progress.reached)
        failed = bool(ran.code) or ran.interrupt is not None
    finally:
        progress.end(whole=not failed)
    result: Any = _runs.runs_of(ran)
    if not failed:
        return result
    if ran.interrupt is not None and not isinstance(ran.interrupt, KeyboardInterrupt):
        raise ran.interrupt
    if ran.interrupt is not None:
        raise _errors.Interrupted(ran.message or "stopped")._of(ran.code, result) from None
    raise _errors.of(ran.code, ran.message, result)


def function(path: Tuple[str, ...], command: Dict[str, Any]) -> Callable[..., Any]:
    """A command as a function."""

    def verb(*args: Any, **keywords: Any) -> Any:
        return call(path, command, args, keywords)

    verb.__name__ = python_name(path[-1])
    verb.__qualname__ = ".".join(python_name(word) for word in path)
    verb.__module__ = "weir"
    verb.__doc__ = describe(command)
    verb.__signature__ = signature(command)  # type: ignore[attr-defined]
    return verb


class Group:
    """Commands under one name. A group that is called and does nothing itself gives its list."""

    def __init__(self, path: Tuple[str, ...], command: Dict[str, Any]) -> None:
        self.__doc__ = describe(command)
        self.__name__ = python_name(path[-1])
        self._path = path
        self._names = []
        for below in command["commands"]:
            if not below["hidden"]:
                name = python_name(below["name"])
                setattr(self, name, made((*path, below["name"]), below))
                self._names.append(name)
        self._own = callable_of(command)
        if self._own is not None:
            self.__signature__ = signature(self._own)
        self._own_path = path if self._own is command else (*path, "list")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if self._own is None:
            raise TypeError(f"{'.'.join(('weir', *self._path))} is a group; call one of {', '.join(self._names)}")
        return call(self._own_path, self._own, args, keywords)

    def __dir__(self) -> List[str]:
        return [*self._names, "__call__", "__doc__"]

    def __repr__(self) -> str:
        return f"<{'.'.join(('weir', *self._path))}: {', '.join(self._names)}>"


def callable_of(command: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """What is run when a group is called: itself, or its list."""
    if command["alone"]:
        return command
    return next((below for below in command["commands"] if below["name"] == "list"), None)


def made(path: Tuple[str, ...], command: Dict[str, Any]) -> Any:
    return Group(path, command) if command["commands"] else function(path, command)


@functools.lru_cache(maxsize=None)
def tree() -> Dict[str, Any]:
    return json.loads(_weir.commands())


@functools.lru_cache(maxsize=None)
def verbs() -> Dict[str, Any]:
    """The verbs by their names."""
    shown = (c for c in tree()["commands"] if not c["hidden"] and c["name"] not in _LEFT_OUT)
    return {python_name(command["name"]): made((command["name"],), command) for command in shown}
