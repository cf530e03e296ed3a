# The 22 queries of TPC-H in DuckDB, with the parameters of the specification's validation run; where rows may tie at a limit, their
# key decides. The tables are those of DuckDB's `tpch` extension, if it is there without a download; else they are made here, with
# the keys, values and correlations of clause 4.2.3, and shorter comments.
import hashlib
import sys
import time

try:
    import duckdb
except ImportError:
    print("lacks python3 has no module duckdb: pip install duckdb", flush=True)
    sys.exit(0)

size, threads, trials, folder = int(sys.argv[2]), int(sys.argv[5]), int(sys.argv[6]), sys.argv[9]
# Measured: all tables take some 1.5 GB in memory for each unit of scale.
scale = max(size / 1.5e9, 0.002)
# It writes nothing: a query that does not fit fails.
config = {"threads": threads, "autoinstall_known_extensions": False, "max_temp_directory_size": "0B", "temp_directory": folder}
base = duckdb.connect(":memory:", config=config)
base.execute("set preserve_insertion_order = false")
base.execute("set enable_progress_bar = false")
try:
    base.execute("load tpch")
    tables = [f"call dbgen(sf = {scale})"]
    maker = "dbgen"
except duckdb.Error:
    maker = "tables by Weir"
    orders, parts, customers, suppliers = (max(int(n * scale), 100) for n in (1500000, 200000, 150000, 10000))

    def pick(x, salt, *words):
        return f"{list(words)}[1 + h({x}, {salt}, {len(words)})]"

    nouns = ["packages", "requests", "accounts", "deposits", "foxes", "ideas", "theodolites", "instructions", "dependencies", "excuses"]
    kinds = ["furious", "sly", "careful", "blithe", "quick", "fluffy", "slow", "quiet", "ruthless", "thin", "close", "dogged", "daring", "special"]
    verbs = ["sleep", "wake", "nag", "haggle", "cajole", "detect", "integrate", "boost", "doze", "unwind"]
    colors = """almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon chocolate coral
        cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew
        hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint misty moccasin navajo navy
        olive orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate
        smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow""".split()
    nations = """ALGERIA 0 ARGENTINA 1 BRAZIL 1 CANADA 1 EGYPT 4 ETHIOPIA 0 FRANCE 3 GERMANY 3 INDIA 2 INDONESIA 2 IRAN 4 IRAQ 4 JAPAN 2 JORDAN 4
        KENYA 0 MOROCCO 0 MOZAMBIQUE 0 PERU 1 CHINA 2 ROMANIA 3 SAUDI_ARABIA 4 VIETNAM 2 RUSSIA 3 UNITED_KINGDOM 3 UNITED_STATES 1""".split()
    nations = [(n, name.replace("_", " "), int(of)) for n, (name, of) in enumerate(zip(nations[::2], nations[1::2]))]
    comment = lambda x, salt: f"concat_ws(' ', {pick(x, salt, *kinds)}, {pick(x, salt + 1, *nouns)}, {pick(x, salt + 2, *verbs)}, {pick(x, salt + 3, *kinds)}, {pick(x, salt + 4, *nouns)})"
    phone = lambda nation, x: f"printf('%d-%03d-%03d-%04d', 10 + {nation}, 100 + h({x}, 40, 900), 100 + h({x}, 41, 900), 1000 + h({x}, 42, 9000))"
    money = lambda x, salt, least, most: f"(({least} + h({x}, {salt}, {most - least + 1})) / 100)::decimal(15, 2)"
    # A part's price and its four suppliers are functions of its key.
    price = "(90000 + ({0} // 10) % 20001 + 100 * ({0} % 1000))"
    supplier = f"(({{0}} + {{1}} * ({suppliers // 4} + ({{0}} - 1) // {suppliers})) % {suppliers} + 1)"
    tables = [
        "create macro h(x, salt, n) as (hash(x * 64 + salt) % n)::bigint",
        "create table region as select * from (values (0, 'AFRICA'), (1, 'AMERICA'), (2, 'ASIA'), (3, 'EUROPE'), (4, 'MIDDLE EAST')) t(r_regionkey, r_name)",
        f"create table nation as select * from (values {', '.join(map(str, nations))}) t(n_nationkey, n_name, n_regionkey)",
        f"""create table supplier as select i as s_suppkey, printf('Supplier#%09d', i) as s_name, md5(i::text) as s_address, h(i, 1, 25) as s_nationkey,
            {phone('h(i, 1, 25)', 'i')} as s_phone, {money('i', 2, -99999, 999999)} as s_acctbal, case h(i, 3, 2000) when 0 then 'Customer sly Complaints '
            else '' end || {comment('i', 4)} as s_comment from range(1, {suppliers + 1}) t(i)""",
        f"""create table part as select i as p_partkey, concat_ws(' ', {', '.join(pick('i', n, *colors) for n in range(1, 6))}) as p_name,
            'Manufacturer#' || (1 + h(i, 6, 5)) as p_mfgr, 'Brand#' || (1 + h(i, 6, 5)) || (1 + h(i, 7, 5)) as p_brand, concat_ws(' ',
            {pick('i', 8, 'STANDARD', 'SMALL', 'MEDIUM', 'LARGE', 'ECONOMY', 'PROMO')}, {pick('i', 9, 'ANODIZED', 'BURNISHED', 'PLATED', 'POLISHED', 'BRUSHED')},
            {pick('i', 10, 'TIN', 'NICKEL', 'BRASS', 'STEEL', 'COPPER')}) as p_type, (1 + h(i, 11, 50))::int as p_size, concat_ws(' ', {pick('i', 12, 'SM', 'LG', 'MED', 'JUMBO', 'WRAP')},
            {pick('i', 13, 'CASE', 'BOX', 'BAG', 'JAR', 'PKG', 'PACK', 'CAN', 'DRUM')}) as p_container, ({price.format('i')} / 100)::decimal(15, 2) as p_retailprice,
            {comment('i', 14)} as p_comment from range(1, {parts + 1}) t(i)""",
        f"""create table partsupp as select i as ps_partkey, {supplier.format('i', 'n')} as ps_suppkey, (1 + h(i * 4 + n, 1, 9999))::int as ps_availqty,
            {money('i * 4 + n', 2, 100, 100000)} as ps_supplycost, {comment('i * 4 + n', 3)} as ps_comment from range(1, {parts + 1}) t(i), range(4) u(n)""",
        f"""create table customer as select i as c_custkey, printf('Customer#%09d', i) as c_name, md5(i::text) as c_address, h(i, 1, 25) as c_nationkey,
            {phone('h(i, 1, 25)', 'i')} as c_phone, {money('i', 2, -99999, 999999)} as c_acctbal,
            {pick('i', 3, 'AUTOMOBILE', 'BUILDING', 'FURNITURE', 'MACHINERY', 'HOUSEHOLD')} as c_mktsegment, {comment('i', 4)} as c_comment from range(1, {customers + 1}) t(i)""",
        # Eight of 32 keys are used, and a third of the customers has no order.
        f"""create temp table placed as select i, (i // 8) * 32 + i % 8 + 1 as key, date '1992-01-01' + h(i, 1, 2406)::int as day, 1 + h(i, 2, 7) as lines
            from range({orders}) t(i)""",
        f"""create table lineitem as select key as l_orderkey, part as l_partkey, {supplier.format('part', 'h(x, 3, 4)')} as l_suppkey, n::int as l_linenumber,
            quantity::decimal(15, 2) as l_quantity, (quantity * {price.format('part')} / 100)::decimal(15, 2) as l_extendedprice,
            (h(x, 5, 11) / 100)::decimal(15, 2) as l_discount, (h(x, 6, 9) / 100)::decimal(15, 2) as l_tax,
            case when ship + h(x, 9, 30)::int + 1 > date '1995-06-17' then 'N' when h(x, 7, 2) = 0 then 'R' else 'A' end as l_returnflag,
            case when ship > date '1995-06-17' then 'O' else 'F' end as l_linestatus, ship as l_shipdate, day + 30 + h(x, 8, 61)::int as l_commitdate,
            ship + h(x, 9, 30)::int + 1 as l_receiptdate, {pick('x', 10, 'DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN')} as l_shipinstruct,
            {pick('x', 11, 'REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB')} as l_shipmode, {comment('x', 12)} as l_comment
            from (select *, 1 + h(x, 1, {parts}) as part, 1 + h(x, 4, 50) as quantity, day + 1 + h(x, 2, 121)::int as ship
            from (select *, i * 8 + n as x from placed, range(1, 8) u(n) where n <= lines))""",
        f"""create table orders as select key as o_orderkey, least(3 * (c // 2) + c % 2 + 1, {customers}) as o_custkey, status as o_orderstatus, total as o_totalprice,
            day as o_orderdate, {pick('i', 4, '1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW')} as o_orderpriority,
            printf('Clerk#%09d', 1 + h(i, 5, {max(int(1000 * scale), 1)})) as o_clerk, 0::int as o_shippriority, {comment('i', 6)} as o_comment
            from (select *, h(i, 3, {max(customers * 2 // 3, 1)}) as c from placed) join (select l_orderkey, case when min(l_linestatus) = max(l_linestatus)
            then min(l_linestatus) else 'P' end as status, sum(l_extendedprice * (1 + l_tax) * (1 - l_discount))::decimal(15, 2) as total from lineitem group by all) on key = l_orderkey""",
        "drop table placed",
    ]
print("version DuckDB", duckdb.__version__ + f", TPC-H of scale {scale:.3g}, {maker}", flush=True)


def timed(name, *statements):
    began = time.perf_counter_ns()
    for statement in statements:
        found = base.execute(statement).fetchall()
    took = time.perf_counter_ns() - began
    digest = hashlib.sha256(repr(sorted(map(repr, found))).encode()).hexdigest()[:16]
    print("figure", name, took, len(found), digest, flush=True)


timed("load", *tables, "select count(*) from lineitem")
REVENUE = "sum(l_extendedprice * (1 - l_discount))"
queries = [
    """select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)),
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
        from lineitem where l_shipdate <= date '1998-09-02' group by all order by 1, 2""",
    """select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment from part, supplier, partsupp, nation, region
        where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS' and s_nationkey = n_nationkey
        and n_regionkey = r_regionkey and r_name = 'EUROPE' and ps_supplycost = (select min(ps_supplycost) from partsupp, supplier, nation, region
        where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE')
        order by s_acctbal desc, n_name, s_name, p_partkey limit 100""",
    f"""select l_orderkey, {REVENUE} as revenue, o_orderdate, o_shippriority from customer, orders, lineitem where c_mktsegment = 'BUILDING'
        and c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
        group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate, l_orderkey limit 10""",
    """select o_orderpriority, count(*) from orders where o_orderdate >= date '1993-07-01' and o_orderdate < date '1993-10-01' and exists
        (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate) group by o_orderpriority order by 1""",
    f"""select n_name, {REVENUE} as revenue from customer, orders, lineitem, supplier, nation, region where c_custkey = o_custkey
        and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey and s_nationkey = n_nationkey
        and n_regionkey = r_regionkey and r_name = 'ASIA' and o_orderdate >= date '1994-01-01' and o_orderdate < date '1995-01-01'
        group by n_name order by revenue desc""",
    """select sum(l_extendedprice * l_discount) from lineitem where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
        and l_discount between 0.05 and 0.07 and l_quantity < 24""",
    f"""select a.n_name, b.n_name, year(l_shipdate), {REVENUE} from supplier, lineitem, orders, customer, nation a, nation b
        where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey and s_nationkey = a.n_nationkey and c_nationkey = b.n_nationkey
        and ((a.n_name = 'FRANCE' and b.n_name = 'GERMANY') or (a.n_name = 'GERMANY' and b.n_name = 'FRANCE'))
        and l_shipdate between date '1995-01-01' and date '1996-12-31' group by 1, 2, 3 order by 1, 2, 3""",
    """select year(o_orderdate), sum(case when b.n_name = 'BRAZIL' then l_extendedprice * (1 - l_discount) else 0 end), sum(l_extendedprice * (1 - l_discount))
        from part, supplier, lineitem, orders, customer, nation a, nation b, region where p_partkey = l_partkey and s_suppkey = l_suppkey
        and l_orderkey = o_orderkey and o_custkey = c_custkey and c_nationkey = a.n_nationkey and a.n_regionkey = r_regionkey and r_name = 'AMERICA'
        and s_nationkey = b.n_nationkey and o_orderdate between date '1995-01-01' and date '1996-12-31' and p_type = 'ECONOMY ANODIZED STEEL' group by 1 order by 1""",
    """select n_name, year(o_orderdate), sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) from part, supplier, lineitem, partsupp,
        orders, nation where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey
        and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%green%' group by 1, 2 order by 1, 2 desc""",
    f"""select c_custkey, c_name, {REVENUE} as revenue, c_acctbal, n_name, c_address, c_phone, c_comment from customer, orders, lineitem, nation
        where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= date '1993-10-01' and o_orderdate < date '1994-01-01'
        and l_returnflag = 'R' and c_nationkey = n_nationkey group by all order by revenue desc, c_custkey limit 20""",
    f"""select ps_partkey, sum(ps_supplycost * ps_availqty) as value from partsupp, supplier, nation where ps_suppkey = s_suppkey
        and s_nationkey = n_nationkey and n_name = 'GERMANY' group by ps_partkey having value > (select sum(ps_supplycost * ps_availqty) * {0.0001 / scale:.12f}
        from partsupp, supplier, nation where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY') order by value desc""",
    """select l_shipmode, sum(case when o_orderpriority in ('1-URGENT', '2-HIGH') then 1 else 0 end),
        sum(case when o_orderpriority not in ('1-URGENT', '2-HIGH') then 1 else 0 end) from orders, lineitem where o_orderkey = l_orderkey
        and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01'
        and l_receiptdate < date '1995-01-01' group by l_shipmode order by l_shipmode""",
    """select c_count, count(*) from (select c_custkey, count(o_orderkey) as c_count from customer left join orders on c_custkey = o_custkey
        and o_comment not like '%special%requests%' group by c_custkey) group by c_count order by 2 desc, 1 desc""",
    """select sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end), sum(l_extendedprice * (1 - l_discount))
        from lineitem, part where l_partkey = p_partkey and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-10-01'""",
    f"""with revenue as (select l_suppkey, {REVENUE} as total from lineitem where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-04-01'
        group by l_suppkey) select s_suppkey, s_name, s_address, s_phone, total from supplier, revenue where s_suppkey = l_suppkey
        and total = (select max(total) from revenue) order by s_suppkey""",
    """select p_brand, p_type, p_size, count(distinct ps_suppkey) as suppliers from partsupp, part where p_partkey = ps_partkey and p_brand <> 'Brand#45'
        and p_type not like 'MEDIUM POLISHED%' and p_size in (49, 14, 23, 45, 19, 3, 36, 9) and ps_suppkey not in (select s_suppkey from supplier
        where s_comment like '%Customer%Complaints%') group by 1, 2, 3 order by suppliers desc, 1, 2, 3""",
    """select sum(l_extendedprice) from lineitem, part where p_partkey = l_partkey and p_brand = 'Brand#23' and p_container = 'MED BOX'
        and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)""",
    """select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) from customer, orders, lineitem where o_orderkey in
        (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 300) and c_custkey = o_custkey and o_orderkey = l_orderkey
        group by all order by o_totalprice desc, o_orderdate, o_orderkey limit 100""",
    f"""select {REVENUE} from lineitem, part where p_partkey = l_partkey and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON'
        and ((p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') and l_quantity between 1 and 11 and p_size between 1 and 5)
        or (p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK') and l_quantity between 10 and 20 and p_size between 1 and 10)
        or (p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG') and l_quantity between 20 and 30 and p_size between 1 and 15))""",
    """select s_name, s_address from supplier, nation where s_suppkey in (select ps_suppkey from partsupp where ps_partkey in (select p_partkey from part
        where p_name like 'forest%') and ps_availqty > (select 0.5 * sum(l_quantity) from lineitem where l_partkey = ps_partkey and l_suppkey = ps_suppkey
        and l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01')) and s_nationkey = n_nationkey and n_name = 'CANADA' order by s_name""",
    """select s_name, count(*) as waits from supplier, lineitem a, orders, nation where s_suppkey = a.l_suppkey and o_orderkey = a.l_orderkey
        and o_orderstatus = 'F' and a.l_receiptdate > a.l_commitdate and exists (select * from lineitem b where b.l_orderkey = a.l_orderkey
        and b.l_suppkey <> a.l_suppkey) and not exists (select * from lineitem c where c.l_orderkey = a.l_orderkey and c.l_suppkey <> a.l_suppkey
        and c.l_receiptdate > c.l_commitdate) and s_nationkey = n_nationkey and n_name = 'SAUDI ARABIA' group by s_name order by waits desc, s_name limit 100""",
    """select code, count(*), sum(c_acctbal) from (select substring(c_phone, 1, 2) as code, c_acctbal from customer where substring(c_phone, 1, 2) in
        ('13', '31', '23', '29', '30', '18', '17') and c_acctbal > (select avg(c_acctbal) from customer where c_acctbal > 0.00 and substring(c_phone, 1, 2)
        in ('13', '31', '23', '29', '30', '18', '17')) and not exists (select * from orders where o_custkey = c_custkey)) group by code order by code""",
]
print("look", flush=True)
sys.stdin.readline()
for trial in range(trials):
    for n, query in enumerate(queries):
        timed(f"q{n + 1}", query)
