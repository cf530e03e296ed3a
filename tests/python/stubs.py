#!/usr/bin/env python3
"""Writes python/weir/__init__.pyi from the list of commands, or checks that it is so: stubs.py [--check]."""

import pathlib
import sys

from weir import _commands

FILE = pathlib.Path(__file__).resolve().parents[2] / "python/weir/__init__.pyi"

HEAD = '''\
# Made by tests/python/stubs.py from the list of commands.
from typing import Any, Dict, Iterable, Iterator, List, Literal, NamedTuple, Optional, Union
import os

Value = Union[str, int, float, os.PathLike[str]]
Values = Union[Value, Iterable[Value]]

__version__: str

class WeirWarning(UserWarning): ...

class Error(Exception):
    code: int
    run: Any

class Usage(Error): ...
class Lacking(Error): ...
class IllegalState(Error): ...
class CommandError(Error): ...

class Interrupted(KeyboardInterrupt):
    code: int
    run: Any

class Column(NamedTuple):
    type: str
    unit: str
    doc: str

class Table:
    name: str
    def __init__(self, table: Any) -> None: ...
    @property
    def columns(self) -> Dict[str, Column]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def to_pyarrow(self) -> Any: ...
    def to_polars(self) -> Any: ...
    def to_pandas(self) -> Any: ...

class Document:
    def __init__(self, text: str) -> None: ...
    @property
    def json(self) -> str: ...
    @property
    def document(self) -> Any: ...
    def __getitem__(self, key: str) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    @property
    def tables(self) -> Dict[str, Table]: ...
    def table(self, name: Optional[str] = None) -> Table: ...
    def _repr_html_(self) -> Optional[str]: ...

class Run(Document):
    def __init__(self, name: Union[str, int], store: Any = None, text: str = "") -> None: ...
    @property
    def summary(self) -> Dict[str, Any]: ...
    @property
    def id(self) -> int: ...
    @property
    def partial(self) -> bool: ...
    @property
    def text(self) -> str: ...
    @property
    def html(self) -> str: ...
    def samples(self) -> Table: ...
    def resume(self, **options: Any) -> Run: ...

class Store:
    path: Optional[str]
    def __init__(self, path: Any = None) -> None: ...
    def __fspath__(self) -> str: ...
    def list(self, **filters: Any) -> Document: ...
    def open(self, name: Union[str, int] = "last") -> Run: ...
    def __getitem__(self, name: Union[str, int]) -> Run: ...
    def __iter__(self) -> Iterator[Run]: ...
    def __len__(self) -> int: ...
'''


def type_of(argument):
    if argument["flag"]:
        return "bool"
    one = f"Literal[{', '.join(map(repr, argument['choices']))}]" if argument["choices"] else "Value"
    if argument["optional_value"]:
        one = f"Union[bool, {one}]"
    if argument["many"] or argument["delimiter"]:
        return "Values" if one == "Value" else f"Union[{one}, Iterable[{one}]]"
    return one


def parameters(command):
    text, starred = [], False
    by_name = {_commands.argument_name(a): a for a in _commands.arguments(command)}
    for parameter in _commands.signature(command).parameters.values():
        kind = type_of(by_name[parameter.name])
        if parameter.kind is parameter.VAR_POSITIONAL:
            text.append(f"*{parameter.name}: {kind}")
            starred = True
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            text.append("*")
            starred = True
        # None is left out, as the command leaves an option out.
        kind = kind if parameter.default is False else f"Optional[{kind}]"
        text.append(f"{parameter.name}: {kind} = {parameter.default!r}")
    return ", ".join(text)


def documented(command, indent):
    return f'{indent}"""{command["about"]}"""'.replace("\\", "\\\\")


def function(name, command, path, indent, method):
    inside = ", ".join(filter(None, ["self" if method else "", parameters(command)]))
    gives = "Run" if command["kept"] else "Any"
    return [f"{indent}def {name}({inside}) -> {gives}:", documented(command, indent + "    "), f"{indent}    ..."]


def group(path, command):
    """The class of a group, after those of the groups in it."""
    name = "_" + "_".join(map(_commands.python_name, path))
    before, inside = [], [documented(command, "    ")]
    own = _commands.callable_of(command)
    if own is not None:
        inside += function("__call__", own, path, "    ", True)
    for below in command["commands"]:
        if below["hidden"]:
            continue
        called = _commands.python_name(below["name"])
        if below["commands"]:
            before += group((*path, below["name"]), below)
            inside.append(f"    {called}: {name}_{called}")
        else:
            inside += function(called, below, path, "    ", True)
    return [*before, f"class {name}:", *inside, ""]


def stub():
    lines = [HEAD]
    commands = {c["name"]: c for c in _commands.tree()["commands"]}
    for name in _commands.verbs():
        command = commands[next(n for n in commands if _commands.python_name(n) == name)]
        if command["commands"]:
            lines += [*group((command["name"],), command), f"{name}: _{name}", ""]
        else:
            lines += [*function(name, command, (name,), "", False), ""]
    workloads = next(c for c in commands["workload"]["commands"] if c["name"] == "list")
    lines += function("workloads", workloads, (), "", False)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    text = stub()
    if "--check" not in sys.argv:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        sys.exit(f"{FILE} is not what the commands are; run tests/python/run --stubs")
