"""Ctrl-C keeps what is measured; progress is optional."""

import os
import signal
import sys
import threading

import pytest
import weir
from conftest import MODEL

# Enough that it does not end before it is interrupted.
LONG = {"on": MODEL, "tier": ["dram", "cxl0"], "quick": True}


def test_an_interrupt_keeps_what_is_measured_and_a_run_goes_on(store, command, monkeypatch):
    done = threading.Event()
    reached = weir._commands.Progress.reached

    def interrupts(self, title, done_now, of):
        if done_now >= 2 and not done.is_set():
            done.set()
            os.kill(os.getpid(), signal.SIGINT)
        return reached(self, title, done_now, of)

    monkeypatch.setattr(weir._commands.Progress, "reached", interrupts)
    # A shell starts programs in the background with this signal ignored, and Python keeps what it finds.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt) as raised:
        weir.bench.loaded(**LONG)
    stopped = raised.value
    assert isinstance(stopped, weir.Interrupted) and not isinstance(stopped, Exception)
    run = stopped.run
    assert run.partial and run.summary["kept"] >= 2 and run.summary["kept"] < run.summary["planned"]
    assert len(run.document["points"]) == run.summary["kept"]
    assert str(stopped).startswith(f"stopped: {run.summary['kept']} of {run.summary['planned']} figures are kept in run {run.id}")
    command.store = store
    assert command.document("runs", "list")["runs"][0]["kept"] == run.summary["kept"]
    # The next verb is not stopped by the request of before.
    assert weir.platforms()["platforms"]


def test_what_a_callback_raises_stops_the_verb(monkeypatch):
    def breaks(self, title, done, of):
        raise ValueError("of the callback")

    monkeypatch.setattr(weir._commands.Progress, "reached", breaks)
    with pytest.raises(ValueError, match="of the callback"):
        weir.bench.loaded(**LONG)


def test_a_stopped_run_is_resumed(monkeypatch):
    from conftest import CURVE

    whole = weir.bench.loaded(**CURVE)
    assert whole.resume().document["points"] == whole.document["points"]


def test_progress_is_drawn_by_tqdm_and_needs_none(monkeypatch, capfd):
    from conftest import CURVE

    weir.bench.loaded(**CURVE, seed=2)
    assert "bench loaded" in capfd.readouterr().err
    weir.bench.loaded(**CURVE, seed=3, quiet=True)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    weir.bench.loaded(**CURVE, seed=4)
    assert capfd.readouterr() == ("", "")


def test_a_bar_is_full_when_its_verb_has_done_all(monkeypatch):
    from tqdm.auto import tqdm

    made = []

    class Bar(tqdm):
        def __init__(self, **options):
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr(weir._progress, "_tqdm", lambda: Bar)
    progress = weir._progress.Progress(False)
    # The last step ends with its part, which has no report of its own.
    progress.reached("one", 1, 3)
    progress.reached("two", 2, 3)
    progress.end()
    progress.reached("three", 2, 3)
    progress.end(whole=False)
    assert [bar.n for bar in made] == [3, 3, 2]
