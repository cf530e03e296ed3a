# PostgreSQL in a private folder, by its socket alone, under pgbench: transactions of the kind of TPC-B, or in the proportions of
# TPC-C on tables of its shape (its terminals do not think here). The sums of the tables must agree after every repetition.
import ctypes
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time

variant, size, _, _, threads, trials, seconds, seed, folder = sys.argv[1:10]
size, threads, trials, seconds = int(size), int(threads), int(trials), max(float(seconds), 1)
CLIENTS = 4 * threads
# Measured: a warehouse takes some 100 MiB.
size = max(size, 100 << 20) if variant == "tpcc" else size
lacks = "lacks PostgreSQL is not installed: apt-get install postgresql"
versions = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: float(path.split("/")[4]))
path = os.pathsep.join(versions[::-1] + [os.environ.get("PATH", "")])
tools = {name: shutil.which(name, path=path) for name in ("initdb", "postgres", "psql", "pgbench")}
if versions:
    # The wrappers of the distribution look for the system's service.
    tools["pgbench"] = shutil.which("pgbench", path=path)
if not all(tools.values()):
    print(lacks, flush=True)
    sys.exit(0)
libc = ctypes.CDLL(None)


def ends_with_this(sign):
    # prctl(2), PR_SET_PDEATHSIG; after the user has changed, which would reset it.
    return lambda: libc.prctl(1, sign, 0, 0, 0)


# It refuses to run as root. The user that its package made is there for it; nobody is everywhere.
as_user = {}
data = os.path.join(folder, "data")
os.mkdir(data, 0o700)
if os.geteuid() == 0:
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = names.get("postgres") or names.get("nobody")
    as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    # Others may pass the folder, and not list it.
    os.chmod(folder, 0o711)
    os.chown(data, user.pw_uid, user.pw_gid)
environment = {"PATH": path, "LC_ALL": "C", "HOME": data, "PGHOST": data, "PGUSER": "weir", "PGDATABASE": "postgres", "TZ": "UTC"}
log = os.path.join(data, "log")


def run(*words, text=None):
    done = subprocess.run(
        words, input=text, text=True, capture_output=True, env=environment, cwd=data, preexec_fn=ends_with_this(signal.SIGKILL), **as_user
    )
    if done.returncode != 0:
        # The first error is the reason; the last line says what was done about it.
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        errors = [line for line in said if "error:" in line.lower() or "fatal:" in line.lower()] or said[-1:]
        name = os.path.basename(words[0])
        raise RuntimeError(f"{name}: {errors[0].removeprefix(name + ': ')}")
    return done.stdout


def ask(statement):
    return run(tools["psql"], "-XAtq", "-v", "ON_ERROR_STOP=1", text=statement).split()


server = None


def start():
    global server
    stop()
    # Data that fit stay in its shared memory. A machine that fails may lose them all.
    mib = max(size * 5 // 4 >> 20, 16)
    settings = f"shared_buffers={mib}MB fsync=off synchronous_commit=off full_page_writes=off autovacuum=off max_wal_size=4GB huge_pages=off"
    settings += f" max_connections={CLIENTS + 10} listen_addresses= dynamic_shared_memory_type=mmap"
    words = [tools["postgres"], "-D", data + "/db", "-k", data]
    for setting in settings.split():
        words += ["-c", setting]
    # At the signal that it has then it removes what it shares.
    server = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=open(log, "w"), stderr=subprocess.STDOUT, env=environment, cwd=data,
        preexec_fn=ends_with_this(signal.SIGQUIT), **as_user
    )
    for _ in range(1200):
        if server.poll() is not None:
            break
        try:
            return ask("select 1")
        except RuntimeError:
            time.sleep(0.05)
    raise RuntimeError("postgres does not start: " + (open(log).read().strip().splitlines() or ["no message"])[-1])


def stop(*_):
    global server
    if server:
        server.send_signal(signal.SIGQUIT)
        server.wait()
        server = None


def ended(*_):
    stop()
    os._exit(1)


signal.signal(signal.SIGTERM, ended)

TABLES = """
create table warehouse (w_id int primary key, w_ytd bigint not null, w_tax int, w_name text) with (fillfactor = 50);
create table district (d_w_id int, d_id int, d_ytd bigint not null, d_next_o_id int not null, d_tax int, primary key (d_w_id, d_id)) with (fillfactor = 50);
create table customer (c_w_id int, c_d_id int, c_id int, c_balance bigint not null, c_ytd bigint not null, c_payments int not null,
    c_last text, c_discount int, c_data text, primary key (c_w_id, c_d_id, c_id)) with (fillfactor = 90);
create table item (i_id int primary key, i_price int, i_name text);
create table stock (s_w_id int, s_i_id int, s_quantity int not null, s_ytd int not null, s_orders int not null, s_dist text,
    s_data text, primary key (s_w_id, s_i_id)) with (fillfactor = 90);
create table orders (o_w_id int, o_d_id int, o_id int, o_c_id int, o_carrier int, o_lines int, o_entry timestamp);
create table new_order (n_w_id int, n_d_id int, n_o_id int);
create table order_line (l_w_id int, l_d_id int, l_o_id int, l_number int, l_i_id int, l_quantity int, l_amount bigint, l_delivered timestamp);
create table history (h_w_id int, h_d_id int, h_c_id int, h_amount int, h_date timestamp);
insert into item select i, 100 + i * 7919 % 9901, md5(i::text) from generate_series(1, 100000) i;
insert into warehouse select w, 300000, w * 37 % 2001, md5(w::text) from generate_series(1, :w) w;
insert into district select w, d, 30000, 3001, d * 41 % 2001 from generate_series(1, :w) w, generate_series(1, 10) d;
insert into customer select w, d, c, -1000, 1000, 1, md5((c % 1000)::text), c * 43 % 5001, rpad(md5(c::text), 400, md5((c + w)::text))
    from generate_series(1, :w) w, generate_series(1, 10) d, generate_series(1, 3000) c;
insert into stock select w, i, 10 + (i * 31 + w) % 91, 0, 0, repeat(md5(i::text), 8), md5(w::text) from generate_series(1, :w) w, generate_series(1, 100000) i;
insert into orders select w, d, o, 1 + o * 1213 % 3000, case when o < 2101 then 1 + o % 10 end, 5 + o % 11, now()::timestamp
    from generate_series(1, :w) w, generate_series(1, 10) d, generate_series(1, 3000) o;
insert into new_order select o_w_id, o_d_id, o_id from orders where o_id > 2100;
insert into order_line select o_w_id, o_d_id, o_id, n, 1 + (o_id * 7919 + n * 104729 + o_d_id) % 100000, 5, 0, o_entry from orders, generate_series(1, o_lines) n;
create unique index on orders (o_w_id, o_d_id, o_id);
create index on orders (o_w_id, o_d_id, o_c_id, o_id);
create unique index on new_order (n_w_id, n_d_id, n_o_id);
create unique index on order_line (l_w_id, l_d_id, l_o_id, l_number);
create index on customer (c_w_id, c_d_id, c_last);
create function pay(w int, d int, c int, amount int) returns void language sql as $$
    update warehouse set w_ytd = w_ytd + amount where w_id = w;
    update district set d_ytd = d_ytd + amount where d_w_id = w and d_id = d;
    update customer set c_balance = c_balance - amount, c_ytd = c_ytd + amount, c_payments = c_payments + 1 where c_w_id = w and c_d_id = d and c_id = c;
    insert into history values (w, d, c, amount, now()) $$;
create function buy(w int, d int, c int, lines int, start int) returns bigint language plpgsql as $$
declare o int; i int; q int; price bigint; total bigint := 0; wanted int;
begin
    update district set d_next_o_id = d_next_o_id + 1 where d_w_id = w and d_id = d returning d_next_o_id - 1 into o;
    insert into orders values (w, d, o, c, null, lines, now());
    insert into new_order values (w, d, o);
    for n in 1..lines loop
        -- Ascending, so that two orders never wait for each other.
        i := 1 + (start + n * 6007) % 100000;
        wanted := 1 + (start + n) % 10;
        select i_price into price from item where i_id = i;
        update stock set s_quantity = case when s_quantity >= wanted + 10 then s_quantity - wanted else s_quantity - wanted + 91 end,
            s_ytd = s_ytd + wanted, s_orders = s_orders + 1 where s_w_id = w and s_i_id = i returning s_quantity into q;
        insert into order_line values (w, d, o, n, i, wanted, wanted * price, null);
        total := total + wanted * price;
    end loop;
    return total;
end $$;
create function deliver(w int, carrier int) returns void language plpgsql as $$
declare o int; c int; total bigint;
begin
    for d in 1..10 loop
        delete from new_order where n_w_id = w and n_d_id = d and n_o_id =
            (select n_o_id from new_order where n_w_id = w and n_d_id = d order by n_o_id limit 1 for update skip locked) returning n_o_id into o;
        continue when o is null;
        update orders set o_carrier = carrier where o_w_id = w and o_d_id = d and o_id = o returning o_c_id into c;
        update order_line set l_delivered = now() where l_w_id = w and l_d_id = d and l_o_id = o;
        select sum(l_amount) into total from order_line where l_w_id = w and l_d_id = d and l_o_id = o;
        update customer set c_balance = c_balance + total where c_w_id = w and c_d_id = d and c_id = c;
    end loop;
end $$;
"""
DRAW = "\\set w random(1, :warehouses)\n\\set d random(1, 10)\n\\set c 1 + (random(0, 1023) | random(1, 3000)) % 3000\n"
# Name, weight, script: the least shares of clause 5.2.3, the rest new orders.
MIX = [
    ("new order", 45, DRAW + "\\set lines random(5, 15)\n\\set start (random(0, 8191) | random(1, 100000)) % 9000\nselect buy(:w, :d, :c, :lines, :start);\n"),
    ("payment", 43, DRAW + "\\set amount random(100, 500000)\nselect pay(:w, :d, :c, :amount);\n"),
    ("order status", 4, DRAW + """select l.* from order_line l, (select o_id from orders where o_w_id = :w and o_d_id = :d and o_c_id = :c
 order by o_id desc limit 1) o where l_w_id = :w and l_d_id = :d and l_o_id = o_id;\n"""),
    ("delivery", 4, DRAW + "\\set carrier random(1, 10)\nselect deliver(:w, :carrier);\n"),
    ("stock level", 4, DRAW + """\\set least random(10, 20)\nselect count(distinct s_i_id) from district, order_line, stock where d_w_id = :w and d_id = :d
 and l_w_id = :w and l_d_id = :d and l_o_id between d_next_o_id - 20 and d_next_o_id - 1 and s_w_id = :w and s_i_id = l_i_id and s_quantity < :least;\n"""),
]
# What must be 0, whatever was done.
CONSISTENT = {
    "tpcb": """select (select sum(abalance) from pgbench_accounts) - (select sum(bbalance) from pgbench_branches),
        (select sum(abalance) from pgbench_accounts) - (select sum(tbalance) from pgbench_tellers),
        (select sum(abalance) from pgbench_accounts) - coalesce((select sum(delta) from pgbench_history), 0)""",
    "tpcc": """select (select count(*) from warehouse where w_ytd <> (select sum(d_ytd) from district where d_w_id = w_id)),
        (select count(*) from district where d_next_o_id - 1 <> (select max(o_id) from orders where o_w_id = d_w_id and o_d_id = d_id)),
        (select sum(o_lines) from orders) - (select count(*) from order_line),
        (select sum(c_ytd) from customer) - (select count(*) * 1000 from customer) - coalesce((select sum(h_amount) from history), 0)""",
}


def load():
    if variant == "tpcb":
        # Measured: some 15 MiB for each unit of scale.
        run(tools["pgbench"], "-i", "-q", "-s", str(max(size // (15 << 20), 1)))
        return int(ask("select count(*) from pgbench_accounts")[0])
    warehouses = max(size // (100 << 20), 1)
    ask(TABLES.replace(":w)", f"{warehouses})") + "vacuum analyze;")
    return warehouses


def trial(n):
    options = ["-n", "-c", str(CLIENTS), "-j", str(threads), "-T", str(max(round(seconds), 1)), "-l", "--log-prefix", f"{data}/t{n}"]
    options += ["--random-seed", str((int(seed) + n) % (1 << 31))]
    if variant == "tpcc":
        options += ["-D", f"warehouses={loaded}"]
        for number, (_, weight, script) in enumerate(MIX):
            file = f"{data}/s{number}"
            with open(file, "w") as to:
                to.write(script)
            os.chmod(file, 0o644)
            options += ["-f", f"{file}@{weight}"]
    before = int(ask("select count(*) from pgbench_history")[0]) if variant == "tpcb" else 0
    began = time.perf_counter_ns()
    run(tools["pgbench"], *options)
    took = time.perf_counter_ns() - began
    lines = [line.split() for file in glob.glob(f"{data}/t{n}.*") for line in open(file)]
    times = sorted(int(line[2]) * 1000 for line in lines)
    if not times:
        raise RuntimeError("no transaction was complete")
    odd = [gap for gap in run(tools["psql"], "-XAtq", "-F", " ", text=CONSISTENT[variant]).split() if gap != "0"]
    if odd:
        print(f"wrong trial {n}: sums of tables are apart by", *odd)
    if variant == "tpcb":
        lost = len(times) - (int(ask("select count(*) from pgbench_history")[0]) - before)
        if lost:
            print(f"wrong trial {n}: of {len(times)} transactions {lost} are not in the tables")
    at = lambda share: times[min(int(len(times) * share), len(times) - 1)]
    # pgbench counts from its first connection to its last answer; the lines of its log have no other time.
    figures = f"per_s={len(times) / seconds} unit=transactions mean={sum(times) / len(times)} p50={at(0.5)}"
    figures += (f" p99={at(0.99)}" if len(times) >= 100 else "") + (f" p999={at(0.999)}" if len(times) >= 1000 else "")
    print("figure", f"trial_{n}", took, 0, "-", figures, flush=True)


try:
    print("version", run(tools["postgres"], "--version").strip() + f", {CLIENTS} clients", flush=True)
    run(tools["initdb"], "-D", data + "/db", "-U", "weir", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
    start()
    began = time.perf_counter_ns()
    loaded = load()
    print("figure load", time.perf_counter_ns() - began, loaded, loaded, flush=True)
    # The kernel shows shared memory in processes that have touched it: this one reads all data into it, and stays.
    reader = subprocess.Popen(
        [tools["psql"], "-XAtq"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=data,
        preexec_fn=ends_with_this(signal.SIGKILL), **as_user
    )
    reader.stdin.write("create extension pg_prewarm;\nselect sum(pg_prewarm(oid::regclass)) from pg_class where relkind in ('r', 'i')\n")
    reader.stdin.write("    and relnamespace = 'public'::regnamespace;\n\\echo all\n")
    reader.stdin.flush()
    while reader.stdout.readline().strip() not in ("all", ""):
        pass
    print("look", flush=True)
    sys.stdin.readline()
    reader.communicate()
    for n in range(1, trials + 1):
        try:
            if server is None or server.poll() is not None:
                start()
            trial(n)
        except RuntimeError as why:
            print("failed", f"trial_{n}", why, flush=True)
finally:
    stop()
