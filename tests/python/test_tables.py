"""Arrow holds what the command's CSV has, and notebooks see charts and tables."""

import csv
import io
import json
import os
import sqlite3
import time
from html.parser import HTMLParser

import pandas
import polars
import pyarrow
import pyarrow.compute
import pytest
import weir
from conftest import CURVE, MODEL


class Parts(HTMLParser):
    """Tags that are not closed yet."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def as_cell(value):
    """A value as one of CSV, whose numbers are read as numbers whatever the column is."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return float(value)
    except ValueError:
        return value


def rows_of_csv(text):
    return [{name: as_cell(cell) for name, cell in row.items()} for row in csv.DictReader(io.StringIO(text))]


def as_rows(rows):
    return [{name: as_cell(value) for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("frame", [None, "points"])
def test_arrow_is_the_csv_of_the_command(store, command, frame):
    run = weir.bench.loaded(**CURVE)
    command.store = store
    theirs = rows_of_csv(command.text("runs", "export", run.id, "--as", "csv", *(["--frame", frame] if frame else [])))
    table = run.table(frame)
    arrow = table.to_pyarrow()
    assert as_rows(arrow.to_pylist()) == theirs and len(table) == len(theirs) == 4
    assert as_rows(table.to_polars().to_dicts()) == theirs
    frame = table.to_pandas()
    assert as_rows(frame.astype(object).where(frame.notna(), None).to_dict("records")) == theirs


def test_every_list_of_a_document_is_a_table(store, command):
    run = weir.plan.pool(days=5, machines=8, pools=[8, 16])
    command.store = store
    assert len(run.tables) > 1
    for name, table in run.tables.items():
        theirs = rows_of_csv(command.text("runs", "export", run.id, "--as", "csv", "--frame", name))
        assert as_rows(table.to_pyarrow().to_pylist()) == theirs
    with pytest.raises(weir.Usage, match="no list of rows is called `nothing` here; there are"):
        run.table("nothing")
    with pytest.raises(KeyError, match="no column is called `nothing` here; there are policy"):
        run.table().columns["nothing"]


def test_documents_that_are_not_kept_have_tables(command):
    theirs = rows_of_csv(command.text("platforms", "list", format="csv"))
    ours = as_rows(weir.platforms().table().to_pyarrow().to_pylist())
    assert [row["name"] for row in ours] == [row["name"] for row in theirs]


def test_units_and_meanings_are_metadata():
    table = weir.bench.loaded(**CURVE).table("points")
    assert table.columns["gbps"].unit == "GB/s" and table.columns["gbps"].type == "Float64"
    field = table.to_pyarrow().schema.field("gbps")
    assert field.metadata[b"unit"] == b"GB/s" and field.metadata[b"doc"]
    assert pyarrow.schema(table) == table.to_pyarrow().schema
    assert isinstance(table.to_polars(), polars.DataFrame) and isinstance(table.to_pandas(), pandas.DataFrame)


def test_arrow_is_not_copied():
    table = weir.bench.loaded(**CURVE).table("points")
    addresses = [
        [buffer.address for chunk in table.to_pyarrow().column("mean_ns").chunks for buffer in chunk.buffers() if buffer]
        for _ in range(2)
    ]
    assert addresses[0] == addresses[1] and addresses[0]


def test_a_table_outlives_its_run():
    arrow = weir.bench.loaded(**CURVE).table("points").to_pyarrow()
    assert arrow.num_rows == 4 and all(value > 0 for value in arrow.column("mean_ns").to_pylist())


def test_samples_are_those_of_the_export(store, command, tmp_path):
    run = weir.bench.loaded(**CURVE)
    command.store = store
    file = tmp_path / "samples.csv"
    command.text("runs", "export", run.id, "--as", "csv", "--samples", file)
    assert as_rows(run.samples().to_pyarrow().to_pylist()) == rows_of_csv(file.read_text())


def test_many_rows(store):
    """How long they take is printed, and depends on how the module is compiled. WEIR_ROWS=1000000 takes a million."""
    many = int(os.environ.get("WEIR_ROWS", "100000"))
    run = weir.bench.loaded(**CURVE)
    with sqlite3.connect(store) as db:
        seq, record = db.execute("SELECT seq, record FROM results WHERE run = ? ORDER BY seq", (run.id,)).fetchone()
        record = json.loads(record)
        windows = record["samples"]
        record["samples"] = [windows[at % len(windows)] for at in range(many)]
        db.execute("UPDATE results SET record = ? WHERE run = ? AND seq = ?", (json.dumps(record), run.id, seq))
    run = weir.Store(store)[run.id]
    began = time.process_time()
    opened = run._run
    read = time.process_time()
    samples = run.samples()
    made = time.process_time()
    arrow = samples.to_pyarrow()
    taken = time.process_time()
    frame = samples.to_polars()
    print(f"\n{len(samples)} rows: {read - began:.3f} s from SQLite, {made - read:.3f} s into Arrow, "
          f"{taken - made:.6f} s to pyarrow, {time.process_time() - taken:.6f} s to polars (processor time)")
    assert opened and arrow.num_rows == len(samples) == frame.height >= many
    # As many figures are of the first window as there were turns.
    assert arrow.column("window_ns").null_count == len(samples) - arrow.filter(
        pyarrow.compute.equal(arrow.column("kind"), "window")).num_rows


@pytest.mark.parametrize("make", [
    lambda: weir.bench.loaded(**CURVE),
    lambda: weir.plan.pool(days=5, machines=8, pools=[8, 16]),
    lambda: weir.interplay(on=MODEL, victims="dram:ld", aggressors="cxl0:ld", threads=2, repeat=1),
], ids=["points", "plan", "interplay"])
def test_a_notebook_sees_charts_and_tables(make):
    html = make()._repr_html_()
    assert html.count("<svg") >= 1 and html.count("<table") >= 1 and "<script" not in html
    # A part that another page takes as it is: closed, and with no other file.
    assert html.startswith('<div class="weir"><style>') and "src=" not in html and 'href="http' not in html
    parts = Parts()
    parts.feed(html)
    assert parts.open == []
    rules = html.split("</style>")[0]
    assert ":root" not in rules and "\nhtml" not in rules and "\nbody {" not in rules


def test_lists_are_tables_in_a_notebook():
    html = weir.platforms()._repr_html_()
    assert "<table" in html and "emr2s" in html
    assert repr(weir.bench.loaded(**CURVE)).startswith("run 1 (done): bench loaded on emr2s+cxl-a\n\n")
