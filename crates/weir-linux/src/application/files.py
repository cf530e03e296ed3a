# A server of files and one of mail, as filebench has them, by fio: files are made, then read and written at random through the
# page cache, which takes its pages by the policy of the process that first touches them. Every block has a checksum.
import ctypes
import glob
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import time

variant, size, record, _, threads, trials, seconds, seed, folder = sys.argv[1:10]
size, record, threads, trials, seconds = int(size), int(record), int(threads), int(trials), float(seconds)
if not shutil.which("fio"):
    print("lacks fio is not installed: apt-get install fio", flush=True)
    sys.exit(0)
jobs = 4 * threads
each = max(size // record // jobs, 1)
libc = ctypes.CDLL(None)
current = None


# The first error is the reason; the last line says what was done about it.
def why(text):
    lines = text.strip().splitlines() or ["no message"]
    return next((line for line in lines if "error" in line), lines[-1])


def fio(*more):
    global current
    words = ["fio", "--name=w", f"--directory={folder}", "--ioengine=psync", f"--bs={record}", f"--filesize={record}", f"--nrfiles={each}"]
    words += [f"--numjobs={jobs}", "--openfiles=64", "--group_reporting", "--output-format=json", "--fallocate=none", f"--randseed={seed}"]
    # It drops no pages before it begins, and has threads, which end with it.
    words += ["--invalidate=0", "--verify=crc32c", "--verify_fatal=0", "--thread", *more]
    current = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        preexec_fn=lambda: libc.prctl(1, signal.SIGKILL, 0, 0, 0),
    )
    out, err = current.communicate()
    code, current = current.returncode, None
    try:
        return code, json.loads(out[out.index("{"):])["jobs"][0], err
    except (ValueError, KeyError, IndexError):
        raise RuntimeError(f"fio ended ({code}): " + why(err or out))


def ended(*_):
    if current:
        current.kill()
        current.wait()
    os._exit(1)


signal.signal(signal.SIGTERM, ended)
version = subprocess.run(["fio", "--version"], capture_output=True, text=True).stdout.strip()
print("version", f"{version}, {jobs * each} files of {record >> 10} KiB, {jobs} threads; the latency is that of {'fsync' if variant == 'varmail' else 'writes'}", flush=True)
began = time.perf_counter_ns()
code, _, err = fio("--rw=write", "--do_verify=0", "--file_service_type=sequential")
if code:
    raise RuntimeError(why(err))
print("figure make_files", time.perf_counter_ns() - began, jobs * each, jobs * each, flush=True)
# Of so many files the pages are seen while they are mapped here.
maps = []
for name in sorted(glob.glob(folder + "/w.*"))[:4000]:
    with open(name, "rb") as file:
        maps.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        sum(maps[-1][at] for at in range(0, len(maps[-1]), 4096))
print("look", flush=True)
sys.stdin.readline()
maps.clear()
# Reads and writes 1:2 of whole files; 1:1 with fsync after each write.
mix = {"fileserver": ["--rwmixread=33"], "varmail": ["--rwmixread=50", "--fsync=1"]}[variant]
for n in range(1, trials + 1):
    try:
        timed = ["--time_based", f"--runtime={max(round(seconds), 1)}"]
        _, done, err = fio("--rw=randrw", "--do_verify=0", "--file_service_type=random", *mix, *timed)
        parts = [done["read"], done["write"]]
        count = sum(part["total_ios"] for part in parts)
        times = done["sync"]["lat_ns"] if variant == "varmail" else done["write"]["clat_ns"]
        spread = {float(share): value for share, value in times.get("percentile", {}).items()}
        mean, took = times["mean"], max(part["runtime"] for part in parts) * 1e6
        words = " ".join(f"{key}={spread[share]}" for key, share in (("p50", 50.0), ("p99", 99.0), ("p999", 99.9)) if share in spread)
        print("figure", f"trial_{n}", took, 0, "-", f"per_s={count / max(took, 1) * 1e9} unit=operations mean={mean}", words, flush=True)
    except RuntimeError as why:
        print("failed", f"trial_{n}", why, flush=True)
code, checked, err = fio("--rw=read", "--verify_only=0", "--file_service_type=sequential")
if code or checked.get("error") or checked["read"]["total_ios"] < jobs * each:
    told = [line.strip() for line in err.splitlines() if "verify" in line] or [f"{checked['read']['total_ios']} of {jobs * each} files are read"]
    print("wrong", "after all repetitions:", told[0], flush=True)
