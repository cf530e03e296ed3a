"""What verbs give: documents, runs, their tables, and the store."""

from __future__ import annotations

import json
import math
import numbers
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Union

from . import _errors, _weir

Name = Union[str, int]


def word(value: Any) -> str:
    """A value as a word; a column of a frame with missing values has whole numbers as 4.0, of NumPy's types too."""
    fraction = isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational)
    return str(int(value)) if fraction and math.isfinite(value) and value == int(value) else str(value)


def _file(path: Any) -> Optional[str]:
    """The file of a store, wherever the process goes; None is the user's."""
    if path is None:
        return None
    text = os.fsdecode(path)
    if not text:
        raise _errors.of(2, "an empty text names no store")
    return os.path.abspath(text)


class Column(NamedTuple):
    """A column of a table."""

    type: str
    unit: str
    doc: str


class _Columns(Dict[str, Column]):
    def __missing__(self, name: str) -> Column:
        raise KeyError(f"no column is called `{name}` here; there are {', '.join(self)}")


class Table:
    """A list of rows. Whatever reads Arrow by the PyCapsule interface takes its columns as they are."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.name: str = table.name

    @property
    def columns(self) -> Dict[str, Column]:
        """Type, unit and meaning by the name of each column."""
        return _Columns({name: Column(*about) for name, *about in self._table.columns()})

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"<weir.Table {self.name}: {len(self)} rows, {len(self.columns)} columns>"

    def __arrow_c_schema__(self) -> Any:
        return self._table.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)

    def to_pyarrow(self) -> Any:
        """A ``pyarrow.Table``; units and meanings are in the metadata of its fields."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> Any:
        """A ``polars.DataFrame``."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``; pandas reads Arrow by pyarrow."""
        return self.to_pyarrow().to_pandas()


class Document:
    """A document of the command, as docs/json.md describes it: ``document["platforms"]``."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parsed: Any = None
        self._tables: Optional[List[Table]] = None

    def __getstate__(self) -> Dict[str, Any]:
        # What was read is read again.
        return {**vars(self), "_tables": None, "_opened": None}

    @property
    def json(self) -> str:
        """The document as text."""
        return self._text

    @property
    def document(self) -> Any:
        """The document as dictionaries and lists."""
        if self._parsed is None:
            self._parsed = json.loads(self.json)
        return self._parsed

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    @property
    def tables(self) -> Dict[str, Table]:
        """Its lists of rows by their names, the main one first."""
        if self._tables is None:
            self._tables = [Table(table) for table in self._rows()]
        return {table.name: table for table in self._tables}

    def _rows(self) -> List[Any]:
        return _weir.tables(self.json)

    def table(self, name: Optional[str] = None) -> Table:
        """A list of rows by its name, or the main one."""
        tables = self.tables
        if not tables:
            raise _errors.of(2, "this document has no list of rows")
        if name is None:
            return next(iter(tables.values()))
        if name not in tables:
            raise _errors.of(2, f"no list of rows is called `{name}` here; there are {', '.join(tables)}")
        return tables[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.document)

    def __repr__(self) -> str:
        if not isinstance(self.document, dict):
            return self.json
        lists = "".join(f", {table.name}: {len(table)} rows" for table in self.tables.values())
        return f"<weir.Document {self.document.get('schema', '')}{lists}>"

    def _repr_html_(self) -> Optional[str]:
        return _weir.html(self.json) or None


class Run(Document):
    """A run of the store. In a notebook it shows what it means, its charts and its figures."""

    def __init__(self, name: Name, store: Any = None, text: str = "") -> None:
        super().__init__(text)
        self._named = word(name)
        self._store = _file(store)
        self._opened: Any = None

    @property
    def _run(self) -> Any:
        if self._opened is None:
            self._opened = _opened(self._named, self._store)
        return self._opened

    @property
    def summary(self) -> Dict[str, Any]:
        """Its line in the list of runs: id, verb, machine, seed, when it began, and whether it is partial."""
        return json.loads(self._run.summary())

    @property
    def id(self) -> int:
        """Its number in the store."""
        return self.summary["id"]

    @property
    def partial(self) -> bool:
        """Whether it was stopped before it had all its figures."""
        return self.summary["partial"]

    @property
    def json(self) -> str:
        """The document as text."""
        if not self._text:
            self._text = _calling(self._run.document)
        return self._text

    @property
    def text(self) -> str:
        """What the command prints of it."""
        return self._run.text()

    @property
    def html(self) -> str:
        """What it means, its charts and its figures, as a part of a page that needs nothing else."""
        return _calling(self._run.html)

    def _rows(self) -> List[Any]:
        return _calling(self._run.tables)

    def samples(self) -> Table:
        """Each window that was measured and each latency that was seen, of a run of points."""
        return Table(_calling(self._run.samples))

    def resume(self, **options: Any) -> "Run":
        """Measures what it still lacks."""
        from . import _commands

        return _commands.verbs()["runs"].resume(self._named, store=self._store, **options)

    def __repr__(self) -> str:
        line = self.summary
        state = "partial" if line["partial"] else "done"
        on = f" on {line['machine']}" if line["machine"] else ""
        return f"run {line['id']} ({state}): {line['verb']}{on}\n\n{self.text}"

    def _repr_html_(self) -> Optional[str]:
        try:
            return self.html
        except _errors.Error:
            return None


class Store:
    """The file of runs: the user's, or that of a path."""

    def __init__(self, path: Any = None) -> None:
        self.path: Optional[str] = _file(path)

    def __fspath__(self) -> str:
        if self.path is None:
            raise TypeError("the user's store has no path here; name one")
        return self.path

    def list(self, **filters: Any) -> Document:
        """Runs, the newest first: all, or those of ``machine``, ``experiment``, ``tier``, ``since``, ``limit``."""
        from . import _commands

        return _commands.verbs()["runs"].list(store=self.path, **filters)

    def open(self, name: Name = "last") -> Run:
        """A run by its number, by ``last``, or by the beginning of its machine's name."""
        run = Run(name, self.path)
        return Run(run.id, self.path)

    def __getitem__(self, name: Name) -> Run:
        return self.open(name)

    def __iter__(self) -> Iterator[Run]:
        return (Run(line["id"], self.path) for line in self.list()["runs"])

    def __len__(self) -> int:
        return len(self.list()["runs"])

    def __repr__(self) -> str:
        return f"<weir.Store {self.path or 'of the user'}>"


def _opened(name: str, store: Optional[str]) -> Any:
    if store is None and os.environ.get("WEIR_STORE") == "":
        raise _errors.of(2, "the variable WEIR_STORE is empty; unset it, or name a file in it")
    return _calling(lambda: _weir.open(name, store or os.environ.get("WEIR_STORE")))


def _calling(ask: Any) -> Any:
    try:
        return ask()
    except _weir.Failed as failed:
        raise _errors.of(*failed.args) from None


def runs_of(ran: Any) -> Any:
    """What a verb gave: a run, several, a document, or text."""
    text = ran.printed
    document = text.lstrip()[:1] in ("{", "[")
    if len(ran.runs) == 1:
        return Run(ran.runs[0], ran.store, text if document else "")
    if ran.runs:
        return [Run(run, ran.store) for run in ran.runs]
    if document:
        return Document(text)
    return text or None
