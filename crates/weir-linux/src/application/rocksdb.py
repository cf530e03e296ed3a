# RocksDB by its own db_bench: filled in random order, then read or scanned with a block cache that holds all data.
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys

variant, size, record, _, threads, trials, seconds, seed, folder = sys.argv[1:10]
size, record, threads, trials, seconds = int(size), int(record), int(threads), int(trials), float(seconds)
tool = shutil.which("db_bench")
if not tool:
    print("lacks RocksDB's db_bench is not installed: apt-get install rocksdb-tools", flush=True)
    sys.exit(0)
# Keys of 20 bytes and values of 100, as CXL-Interplay has them.
rows = max(size // 120, 1000)
what = {"get": "readrandom", "scan": "seekrandom"}[variant]
steps = ["filluniquerandom", "compact"] + [what] * (trials + 1)
words = [tool, "--benchmarks=" + ",".join(steps), f"--db={folder}/db", f"--num={rows}", f"--threads={threads}", "--key_size=20"]
words += ["--value_size=100", "--compression_type=none", "--disable_wal=true", "--histogram=true", "--statistics=false", f"--seed={seed}"]
words += [f"--cache_size={max(size * 2, 64 << 20)}", f"--duration={max(round(seconds), 1)}", f"--reads={1 << 40}", "--seek_nexts=100"]
words += ["--bloom_bits=10", "--cache_index_and_filter_blocks=true"]
libc = ctypes.CDLL(None)
bench = subprocess.Popen(
    words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
    preexec_fn=lambda: libc.prctl(1, signal.SIGKILL, 0, 0, 0),
)


def ended(*_):
    bench.kill()
    bench.wait()
    os._exit(1)


signal.signal(signal.SIGTERM, ended)
version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "rocksdb-tools"], capture_output=True, text=True).stdout if shutil.which("dpkg-query") else ""
print("version RocksDB", version + f", {rows} rows of 120 B", flush=True)
at, n = {}, 0
# A line for each step, then its histogram, whose percentiles are in microseconds.
for line in bench.stdout:
    told = re.match(r"(\w+) +: +([0-9.]+) micros/op ([0-9]+) ops/sec ([0-9.]+) seconds ([0-9]+) operations;(.*)", line)
    if told:
        name, mean, rate, took, done, rest = told.groups()
        found = re.search(r"\((\d+) of (\d+) found", rest)
        at = {"name": name, "mean": float(mean) * 1e3, "rate": float(rate), "took": float(took) * 1e9, "found": found}
    told = re.search(r"Percentiles: P50: ([0-9.]+) P75: [0-9.]+ P99: ([0-9.]+) P99.9: ([0-9.]+)", line)
    if not told or not at:
        continue
    p50, p99, p999 = (float(text) * 1e3 for text in told.groups())
    name, found = at["name"], at["found"]
    if found and found.group(1) != found.group(2):
        print("wrong", name, "finds", *found.group(0)[1:].split()[:3], "keys, which are all there", flush=True)
    if name == what:
        n += 1
        if n == 1:
            # The cache is filled, and the next step reads.
            print("look", flush=True)
            sys.stdin.readline()
    label = "fill" if name.startswith("fill") else "fill the cache" if n == 1 else f"trial {n - 1}"
    unit = {"readrandom": "reads", "seekrandom": "scans"}.get(name, "writes")
    print("figure", label.replace(" ", "_"), at["took"], rows if unit == "writes" else 0, "-", f"per_s={at['rate']} unit={unit}",
          f"mean={at['mean']} p50={p50} p99={p99} p999={p999}", flush=True)
    at = {}
if bench.wait() != 0:
    text = [line for line in bench.stderr.read().splitlines() if line.strip()] or ["no message"]
    print("failed", f"trial_{max(n, 1)}", f"db_bench ended ({bench.returncode}):", text[-1], flush=True)
