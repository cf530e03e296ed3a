"""A store for each test, and the command beside which the package is held."""

import json
import os
import subprocess

import pytest

MODEL = "emr2s+cxl-a"
# A curve of four points that a model has in a fraction of a second.
CURVE = {"on": MODEL, "tier": ["cxl0"], "mix": "reads", "threads": 2, "pause": ["0ns", "200ns", "800ns"]}
WORDS = ["bench", "loaded", "--on", MODEL, "--tier", "cxl0", "--mix", "reads", "--threads", "2", "--pause", "0ns,200ns,800ns"]


class Command:
    """The command as a process, with a store of its own."""

    def __init__(self, store):
        self.store = store

    def run(self, *words, format="json"):
        asked = [os.environ["WEIR"], *map(str, words), "--quiet", "--format", format]
        return subprocess.run(asked, env={**os.environ, "WEIR_STORE": str(self.store)}, capture_output=True, text=True)

    def text(self, *words, format="json"):
        ran = self.run(*words, format=format)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def document(self, *words):
        return json.loads(self.text(*words))


@pytest.fixture
def command(tmp_path):
    return Command(tmp_path / "command.sqlite")


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    path = tmp_path / "python.sqlite"
    monkeypatch.setenv("WEIR_STORE", str(path))
    return path
