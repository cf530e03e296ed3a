# Queries 1, 3, 6 and 18 of TPC-H in DuckDB, on tables of its shape that are made here: the generator of TPC-H is an extension
# that must be downloaded. Money is in whole cents, so that sums do not depend on their order.
import hashlib
import sys
import time

try:
    import duckdb
except ImportError:
    print("lacks python3 has no module duckdb: pip install duckdb", flush=True)
    sys.exit(0)

size, _, threads, trials = map(int, sys.argv[1:])
# Measured: lines, orders and customers take some 70 bytes for each line.
orders = max(size // 70 // 4, 1000)
print("version DuckDB", duckdb.__version__, flush=True)
base = duckdb.connect(":memory:", config={"threads": threads})
base.execute("set preserve_insertion_order = false")
base.execute("set enable_progress_bar = false")


def timed(name, *statements):
    began = time.perf_counter_ns()
    for statement in statements:
        found = base.execute(statement).fetchall()
    took = time.perf_counter_ns() - began
    digest = hashlib.sha256(repr(sorted(map(repr, found))).encode()).hexdigest()[:16]
    print("figure", name, took, len(found), digest, flush=True)


base.execute("create macro h(x, n) as (hash(x) % n)::bigint")
customers = max(orders // 10, 1)
timed(
    "load",
    f"""create table customer as select i as c_custkey,
        ['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'MACHINERY', 'HOUSEHOLD'][1 + h(i, 5)] as c_mktsegment
        from range({customers}) t(i)""",
    f"""create table orders as select i as o_orderkey, h(i * 3, {customers}) as o_custkey,
        date '1992-01-01' + h(i * 5, 2406)::int as o_orderdate, 0::int as o_shippriority,
        h(i * 7, 50000000) as o_totalprice from range({orders}) t(i)""",
    f"""create table lineitem as select i // 4 as l_orderkey, 1 + h(i * 3, 50) as l_quantity,
        90000 + h(i * 5, 10000000) as l_extendedprice, h(i * 7, 11) as l_discount, h(i * 11, 9) as l_tax,
        ['A', 'N', 'R'][1 + h(i * 13, 3)] as l_returnflag, ['F', 'O'][1 + h(i * 17, 2)] as l_linestatus,
        date '1992-01-01' + (h((i // 4) * 5, 2406) + 1 + h(i * 19, 121))::int as l_shipdate
        from range({orders * 4}) t(i)""",
    "select count(*) from lineitem",
)
queries = {
    "q1": """select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
        sum(l_extendedprice * (100 - l_discount)), sum(l_extendedprice * (100 - l_discount) * (100 + l_tax)), count(*)
        from lineitem where l_shipdate <= date '1998-09-02' group by all order by all""",
    "q3": """select l_orderkey, sum(l_extendedprice * (100 - l_discount)) as revenue, o_orderdate, o_shippriority
        from customer, orders, lineitem where c_mktsegment = 'BUILDING' and c_custkey = o_custkey
        and l_orderkey = o_orderkey and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
        group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate, l_orderkey limit 10""",
    "q6": """select sum(l_extendedprice * l_discount) from lineitem where l_shipdate >= date '1994-01-01'
        and l_shipdate < date '1995-01-01' and l_discount between 5 and 7 and l_quantity < 24""",
    "q18": """select c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) from customer, orders, lineitem
        where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 180)
        and c_custkey = o_custkey and o_orderkey = l_orderkey
        group by all order by o_totalprice desc, o_orderdate, o_orderkey limit 100""",
}
print("look", flush=True)
sys.stdin.readline()
for trial in range(trials):
    for name, query in queries.items():
        timed(name, query)
