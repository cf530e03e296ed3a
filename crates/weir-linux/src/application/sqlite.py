# db_bench's fill, read and scan on SQLite in memory. All work is done by one statement each, so that Python takes no part.
import sys
import time

try:
    import sqlite3
except ImportError:
    print("lacks python3 has no module sqlite3: apt-get install python3", flush=True)
    sys.exit(0)

size, record, trials = (int(sys.argv[n]) for n in (2, 3, 6))
record = max(record, 24)
# A key and the headers of the row and of its page take some 20 bytes; the fill in random order leaves pages two thirds full.
rows = max(size * 2 // 3 // (record + 20), 100)
# Odd, and of no common factor with the number of rows: the keys in an order that looks random.
step = 2654435761
while __import__("math").gcd(step, rows) != 1:
    step += 2
print("version SQLite", sqlite3.sqlite_version, flush=True)
base = sqlite3.connect(":memory:", isolation_level=None)
for setting in ("page_size = 4096", "journal_mode = off", "synchronous = off", "temp_store = memory"):
    base.execute("pragma " + setting)
base.execute("create table t (k integer primary key, v text)")
order = f"with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < {rows})"
# The sum of all keys, from the keys and from the text of each value.
right = (rows, rows * (rows - 1) // 2, rows * (rows - 1) // 2)


def timed(name, statement, wanted):
    began = time.perf_counter_ns()
    found = base.execute(statement).fetchone()
    took = time.perf_counter_ns() - began
    if wanted and found != wanted:
        print("wrong", name, "found", found, "in place of", wanted)
    print("figure", name, took, rows, rows, flush=True)


timed("fill", f"insert into t {order} select i * {step} % {rows}, printf('%0{record}d', i * {step} % {rows}) from n", None)
print("look", flush=True)
sys.stdin.readline()
for trial in range(trials):
    timed(
        "read_random",
        f"{order} select count(*), sum(t.k), sum(cast(t.v as integer)) from n cross join t on t.k = (n.i * {step} + 17) % {rows}",
        right,
    )
    timed("scan", "select count(*), sum(k), sum(cast(v as integer)) from t", right)
