# The 99 queries of TPC-DS in DuckDB, as its extension `tpcds` has them: its generator makes the tables, and its queries have the
# parameters of the specification's validation run. The extension is found without a download: installed before, or as the wheel.
import glob
import hashlib
import os
import sys
import time

WHEEL = "pip install duckdb-extension-tpcds"
try:
    import duckdb
except ImportError:
    print(f"lacks python3 has no module duckdb: {WHEEL}", flush=True)
    sys.exit(0)

size, threads, trials, folder = int(sys.argv[2]), int(sys.argv[5]), int(sys.argv[6]), sys.argv[9]
# Measured: all tables take some 1.9 GB in memory for each unit of scale, and 75 MB besides. At a scale of
# 0.003 the generator did not end.
LEAST = 0.01
scale = max((size - 75e6) / 1.9e9, LEAST)
# It writes nothing: a query that does not fit fails.
config = {"threads": threads, "autoinstall_known_extensions": False, "max_temp_directory_size": "0B", "temp_directory": folder}
base = duckdb.connect(":memory:", config=config)
base.execute("set enable_progress_bar = false")
try:
    base.execute("load tpcds")
except duckdb.Error:
    try:
        import duckdb_extension_tpcds

        [found] = [f for path in duckdb_extension_tpcds.__path__ for f in glob.glob(os.path.join(path, "**", "*.duckdb_extension"), recursive=True)]
        base.execute(f"load '{found}'")
    except (ImportError, ValueError, duckdb.Error):
        print(f"lacks DuckDB {duckdb.__version__} has no extension tpcds: {WHEEL}", flush=True)
        sys.exit(0)
least = ", the least that its generator makes" if scale == LEAST else ""
print("version DuckDB", duckdb.__version__ + f", TPC-DS of scale {scale:.3g}{least}", flush=True)


def timed(name, statement):
    began = time.perf_counter_ns()
    found = base.execute(statement).fetchall()
    took = time.perf_counter_ns() - began
    digest = hashlib.sha256(repr(sorted(map(repr, found))).encode()).hexdigest()[:16]
    print("figure", name, took, len(found), digest, flush=True)


timed("load", f"call dsdgen(sf = {scale})")
queries = base.execute("select query_nr, query from tpcds_queries() order by 1").fetchall()
print("look", flush=True)
sys.stdin.readline()
for trial in range(trials):
    for n, query in queries:
        timed(f"q{n}", query)
