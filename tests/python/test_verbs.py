"""Verbs in the process give what the command gives."""

import inspect
import json
import logging
import os
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy
import pytest
import weir
from conftest import CURVE, MODEL, WORDS


def without_time(document):
    return {key: value for key, value in document.items() if key not in ("elapsed_s", "run")}


@pytest.mark.parametrize("seed", [1, 7])
def test_figures_are_those_of_the_command_for_a_seed(command, seed):
    ours = weir.bench.loaded(**CURVE, seed=seed)
    assert without_time(ours.document) == without_time(command.document(*WORDS, "--seed", seed))


def test_a_plan_without_a_machine_is_that_of_the_command(command):
    words = ["plan", "pool", "--days", "5", "--machines", "8", "--pools", "8", "--pools", "16"]
    ours = weir.plan.pool(days=5, machines=8, pools=[8, 16])
    assert repr(ours).startswith(f"run {ours.id} (done): plan pool\n")
    assert without_time(ours.document) == without_time(command.document(*words))


def test_documents_that_are_not_kept_are_those_of_the_command(command):
    platforms = weir.platforms()
    assert platforms.document == command.document("platforms", "list")
    assert repr(platforms) == f"<weir.Document weir/platforms/1, platforms: {len(platforms['platforms'])} rows>"
    assert weir.workloads().document == command.document("workload", "list")
    assert weir.topo(on=MODEL).document == command.document("topo", "--on", MODEL)


def test_positional_arguments_are_words(command):
    assert weir.platforms.show(MODEL).document == command.document("platforms", "show", MODEL)
    assert weir.platforms.show("emr2s").document != weir.platforms.show(MODEL).document
    ours = weir.reproduce("post-optane", only="POP-021")
    assert without_time(ours.document) == without_time(command.document("reproduce", "post-optane", "--only", "POP-021"))


def test_a_run_is_in_the_store_as_if_the_command_had_made_it(store, command):
    ours = weir.bench.loaded(**CURVE)
    command.store = store
    assert command.document("runs", "show", ours.id) == ours.document
    line = command.document("runs", "list")["runs"][0]
    assert line == ours.summary
    assert [run.id for run in weir.Store(store)] == [ours.id] and len(weir.Store(store)) == 1
    assert weir.Store(store)["last"].document == ours.document
    assert weir.runs()["runs"] == weir.runs.list()["runs"] == [line]
    assert weir.runs.show(ours).document == ours.document
    assert command.text("runs", "show", ours.id, format="table").endswith(ours.text)


def test_figures_that_the_command_measured_are_not_measured_again(store, command, caplog):
    command.store = store
    command.document(*WORDS)
    with caplog.at_level(logging.INFO, "weir"):
        weir.bench.loaded(**CURVE)
    assert "4 of 4 figures were measured before and come from the store" in caplog.text


MISTAKES = [
    (["bench", "loaded", "--on", MODEL, "--tierz", "cxl0"], lambda: weir.bench.loaded(on=MODEL, tierz="cxl0")),
    (["bench", "loaded", "--on", MODEL, "--tier", "cxl9"], lambda: weir.bench.loaded(on=MODEL, tier="cxl9")),
    (["bench", "loaded", "--on", "emr3s"], lambda: weir.bench.loaded(on="emr3s")),
    (["runs", "show", "77"], lambda: weir.runs.show(77)),
    (["runs", "show", "77"], lambda: weir.Store().open(77).document),
    (["plan", "pool", "--trace", "nowhere.csv"], lambda: weir.plan.pool(trace="nowhere.csv")),
    (["bench", "bandwidth", "--on", "zen5-2s", "--op", "movdir64b", "--quick"],
     lambda: weir.bench.bandwidth(on="zen5-2s", op="movdir64b", quick=True)),
]


@pytest.mark.parametrize("words,ours", MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_an_exception_has_the_text_and_the_class_of_the_exit_code(command, store, words, ours):
    theirs = command.run(*words)
    text = theirs.stderr.replace(str(command.store), str(store))
    with pytest.raises(weir.Error) as raised:
        ours()
    assert raised.value.code == theirs.returncode
    assert type(raised.value) is {1: weir.Error, 2: weir.Usage, 3: weir.Lacking}[theirs.returncode]
    assert text.strip() in (str(raised.value), f"weir: {raised.value}")


def test_an_illegal_state_is_an_exception_that_has_the_document(command, tmp_path):
    trace = tmp_path / "bad.trace"
    # The flag is published before its data is flushed.
    trace.write_text("weir-persist 1\npool 256\nrequire data 0=01 -> 64=2a\nstore 64 2a\nstore 0 01\nflush 0\nfence\n")
    ran = command.run("persist", "check", trace)
    with pytest.raises(weir.IllegalState) as raised:
        weir.persist.check(trace)
    assert raised.value.code == ran.returncode == 4
    assert str(raised.value) == "a check found what must not be"
    assert without_time(raised.value.run.document) == without_time(json.loads(ran.stdout))


@pytest.mark.parametrize("code", [1, 2, 3, 7])
def test_a_command_that_fails_is_no_error_of_weir(code):
    failed = pytest.raises(weir.CommandError, match=f"exit code {code}")
    with pytest.warns(weir.WeirWarning, match="the command failed"), failed as raised:
        weir.explain(command=["sh", "-c", f"exit {code}"])
    assert raised.value.code == code


def test_a_document_is_like_the_dictionary_that_it_is():
    document = weir.platforms()
    assert "platforms" in document and set(document) == set(document.document)
    with pytest.raises(TypeError, match="no document"):
        weir.tier.advise(document, on=MODEL)


def test_a_run_is_opened_by_the_number_that_a_frame_has():
    weir.bench.loaded(**CURVE)
    newest = weir.runs().table().to_pandas().id[0]
    assert weir.Store()[newest].id == newest
    assert weir.runs.show(newest).id == newest


def test_every_verb_has_a_function_with_its_help():
    for name, verb in weir._commands.verbs().items():
        assert getattr(weir, name) is verb and verb.__doc__
    signature = inspect.signature(weir.bench.loaded)
    assert signature.parameters["tier"].default is None and signature.parameters["quick"].default is False
    assert "on" in signature.parameters and "format" not in signature.parameters
    assert inspect.signature(weir.reproduce).parameters["papers"].kind is inspect.Parameter.VAR_POSITIONAL
    # Units are in the names of values, and a default is said once.
    assert "tier (TIER): Tiers" in weir.bench.loaded.__doc__ and "pause (TIME): Pauses" in weir.bench.loaded.__doc__
    assert "[default: 0]" not in weir.bench.loaded.__doc__
    assert "[default: 8,16,32,64]" in weir.plan.pool.__doc__
    with pytest.raises(TypeError, match="weir.tier is a group; call one of simulate, "):
        weir.tier()


def test_words_are_those_that_a_shell_would_give():
    from weir._commands import tree, words

    def of(*path):
        command = tree()
        for name in path:
            command = next(c for c in command["commands"] if c["name"] == name)
        return lambda *args, **keywords: words(path, command, args, keywords)

    loaded = of("bench", "loaded")
    assert loaded(tier=["a", "b"], quick=True, repeat=None) == ["bench", "loaded", "--tier=a,b", "--quick"]
    assert loaded(quick=False, on="m", seed=3) == ["bench", "loaded", "--on=m", "--seed=3"]
    with pytest.raises(TypeError, match="quick is on or off; write quick=True"):
        loaded(quick="no")
    with pytest.raises(TypeError, match="no dictionary: {1: 2}"):
        loaded(threads={1: 2})
    # A column of a frame has floats where a value is missing.
    assert loaded(threads=[1.0, 2.0], tier=b"cxl0") == ["bench", "loaded", "--threads=1,2", "--tier=cxl0"]
    # A name that is wrong is the command's to refuse, whatever its value.
    assert loaded(tiers=None, quik=False) == ["bench", "loaded", "--tiers", "--quik"]
    assert of("reproduce")(None) == ["reproduce"]
    with pytest.raises(TypeError, match="workload is given twice"):
        of("explain")("chase", workload="stream")
    assert loaded(threads=range(1, 3)) == ["bench", "loaded", "--threads=1,2"]
    assert loaded(threads=numpy.array([1, 2], dtype="float32")) == ["bench", "loaded", "--threads=1,2"]
    assert loaded(threads=[numpy.float16(0.5), Fraction(1, 2)]) == ["bench", "loaded", "--threads=0.5,1/2"]
    # An empty list of rows is not all rows, and of machines not this one.
    for asked in [lambda: of("reproduce")("a", only=[]), lambda: loaded(on=()), lambda: of("reproduce")([])]:
        with pytest.raises(ValueError, match="(only|on|papers) is an empty list; give it a value, or leave it out"):
            asked()
    for value in [bytearray(b"2"), [None]]:
        with pytest.raises(TypeError, match="threads takes a value or a list of values, and no (bytearray|NoneType)"):
            loaded(threads=value)
    assert of("reproduce")("a", ["b", "c"], only=["x", "y"]) == ["reproduce", "a", "b", "c", "--only=x", "--only=y"]
    assert of("counters", "record")(command=["ls", "-l"])[-3:] == ["--", "ls", "-l"]


def test_a_verb_in_a_thread_waits_for_its_turn():
    import threading

    found = []
    threads = [threading.Thread(target=lambda s: found.append(weir.bench.loaded(**CURVE, seed=s).id), args=(s,)) for s in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [1, 2]


# A verb of some seconds in a thread, a copy of the process meanwhile, and what a verb says there.
FORKED = """
import os, signal, threading, time, weir
verb = threading.Thread(target=lambda: weir.plan.pool(days=75, clusters=50, quiet=True), daemon=True)
verb.start()
while not weir._commands._turn.locked():
    time.sleep(0.01)
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        weir.platforms()
    except weir.Error as error:
        os.write(1, str(error).encode())
    os._exit(0)
os.waitpid(child, 0)
os._exit(0)
"""


def test_a_copy_of_a_process_in_which_a_verb_runs_says_so():
    forked = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True)
    assert forked.stdout.startswith("this process was forked while a verb ran"), forked.stderr


def test_a_copy_of_a_process_in_which_no_verb_runs_has_verbs():
    weir.platforms()
    child = os.fork()
    if child == 0:
        os._exit(0 if weir.platforms()["platforms"] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_no_verb_takes_the_place_of_python(tmp_path):
    pool, code = tmp_path / "pool", "import sys, weir\nweir.pool.create(sys.argv[1], size='256MiB', slice='128MiB')\n" \
        "try:\n    weir.pool.start(sys.argv[1], vm='a.qmp', memory='256MiB', untouched='50%', program=['true'])\n" \
        "except weir.Usage as error:\n    print(error)"
    ran = subprocess.run([sys.executable, "-c", code, str(pool)], capture_output=True, text=True)
    assert "start guests from a shell, by `weir pool start`" in ran.stdout, ran.stderr


def test_a_warning_is_of_the_line_that_called(monkeypatch):
    with pytest.warns(weir.WeirWarning) as warned, pytest.raises(weir.CommandError):
        weir.explain(command=["false"])
    assert {one.filename for one in warned} == {__file__}
    # A group that is called is as far from its caller.
    depths, run = [], weir._commands._weir.run

    def counted(*asked):
        depths.append(len(inspect.stack()))
        return run(*asked)

    monkeypatch.setattr(weir._commands._weir, "run", counted)
    weir.platforms()
    weir.platforms.list()
    assert depths[0] == depths[1]


def test_runs_go_to_other_processes_and_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours = weir.bench.loaded(**CURVE, store="own.sqlite")
    store = weir.Store(b"own.sqlite")
    monkeypatch.chdir("/")
    assert ours.id == 1 and len(ours.table()) == 4 and store["last"].document == ours.document
    there = pickle.loads(pickle.dumps(ours))
    assert there.id == 1 and there.text == ours.text and len(there.table()) == 4


def test_an_empty_name_is_no_store(monkeypatch):
    with pytest.raises(weir.Usage, match="an empty text names no store"):
        weir.Store("")
    monkeypatch.setenv("WEIR_STORE", "")
    with pytest.raises(weir.Usage, match="the variable WEIR_STORE is empty"):
        weir.Store().open()


def test_the_import_needs_no_other_package():
    code = "import sys; sys.path = [p for p in sys.path if 'site-packages' not in p] + [sys.argv[1]]; import weir; " \
           "print([m for m in ('pyarrow', 'pandas', 'polars', 'tqdm', 'numpy') if m in sys.modules])"
    site = next(p for p in sys.path if "site-packages" in p)
    assert subprocess.run([sys.executable, "-c", code, site], capture_output=True, text=True).stdout == "[]\n"
