//! What each application needs: a line for each.

use std::io;

use weir_model::workload::Application;

use weir_loops::programs::protocol::Protocol;
use weir_loops::programs::report::{Given, Report};
use weir_loops::programs::{columns, embedding, graph, neighbours, services, shuffle};

/// How an application runs.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// As a server, to which Weir sends requests.
    Server(&'static Served),
    /// As a script of Python.
    Script(&'static str),
    /// As a process of this command.
    Kernel(Kernel),
}

/// How a server is started and spoken to.
#[derive(Debug)]
pub struct Served {
    pub(super) named: &'static str,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Its arguments, of its threads and the bytes of its data.
    pub(super) arguments: fn(threads: u32, bytes: u64) -> Vec<String>,
    /// The option of its socket.
    pub(super) socket: &'static str,
}

/// No file of the system's service is read or written.
const REDIS: Served = Served {
    named: "redis-server",
    protocol: Protocol::Resp,
    arguments: |_, _| {
        let words = [
            "--save",
            "",
            "--appendonly",
            "no",
            "--port",
            "0",
            "--daemonize",
            "no",
        ];
        words.map(str::to_owned).to_vec()
    },
    socket: "--unixsocket",
};

/// Its memory is a quarter more than the data: items have headers, and slabs classes. It refuses to run as root without a
/// name.
const MEMCACHED: Served = Served {
    named: "memcached",
    protocol: Protocol::Text,
    arguments: |threads, bytes| {
        let mib = (bytes / 4 * 5).div_ceil(1 << 20).max(64);
        let (threads, mib) = (threads.to_string(), mib.to_string());
        let words = ["-U", "0", "-M", "-t", &threads, "-m", &mib, "-u", "root"];
        words.map(str::to_owned).to_vec()
    },
    socket: "-s",
};

/// The body of one of Weir's own programs. What follows its arguments is its own.
pub type Kernel = fn(&Given, &[String], &mut Report<'_>) -> io::Result<()>;

/// An application.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Which.
    pub application: Application,
    /// How it runs.
    pub how: How,
    /// The line that installs what it needs.
    pub install: &'static str,
    /// Figures before the repetitions, and of each.
    pub steps: (u32, u32),
    /// Whether a figure lasts as long as the user says.
    pub lasts: bool,
    /// Whether it uses several threads.
    pub threads: bool,
}

const OWN: &str = "it is this command";
const ONE: (u32, u32) = (0, 1);

macro_rules! table {
    ($($application:ident: $how:expr, $install:expr, $steps:expr, lasts $lasts:expr, threads $threads:expr;)+) => {
        /// All of them. A constant would have a copy of each script in every crate that asks.
        static TABLE: &[Entry] = &[$(Entry {
            application: Application::$application,
            how: $how,
            install: $install,
            steps: $steps,
            lasts: $lasts,
            threads: $threads,
        }),+];

        /// What an application needs.
        pub fn entry(application: Application) -> &'static Entry {
            match application {
                $(Application::$application => &TABLE[Application::$application as usize],)+
            }
        }
    };
}

use How::{Kernel as Own, Script, Server};

#[rustfmt::skip]
table! {
    Redis: Server(&REDIS), "apt-get install redis-server", ONE, lasts true, threads false;
    Memcached: Server(&MEMCACHED), "apt-get install memcached", ONE, lasts true, threads true;
    Sqlite: Script(include_str!("sqlite.py")), "apt-get install python3", (1, 2), lasts false, threads false;
    DuckDb: Script(include_str!("duckdb.py")), "apt-get install python3 python3-pip; pip install duckdb", (1, 22), lasts false, threads true;
    TpcDs: Script(include_str!("tpcds.py")), "apt-get install python3 python3-pip; pip install duckdb-extension-tpcds", (1, 99), lasts false, threads true;
    Postgres: Script(include_str!("postgres.py")), "apt-get install python3 postgresql", (1, 1), lasts true, threads true;
    RocksDb: Script(include_str!("rocksdb.py")), "apt-get install python3 rocksdb-tools", (2, 1), lasts true, threads true;
    Llama: Script(include_str!("llama.py")), "apt-get install python3 python3-pip; pip install llama-cpp-python", ONE, lasts false, threads true;
    Files: Script(include_str!("files.py")), "apt-get install python3 fio", (1, 1), lasts true, threads true;
    PageRank: Own(graph::kernels::pagerank), OWN, ONE, lasts false, threads true;
    Bfs: Own(graph::kernels::bfs), OWN, ONE, lasts false, threads true;
    Cc: Own(graph::kernels::components), OWN, ONE, lasts false, threads true;
    Bc: Own(graph::kernels::centrality), OWN, ONE, lasts false, threads true;
    Tc: Own(graph::kernels::triangles), OWN, ONE, lasts false, threads true;
    Embedding: Own(embedding::run), OWN, ONE, lasts false, threads true;
    Neighbours: Own(neighbours::run), OWN, ONE, lasts false, threads true;
    Shuffle: Own(shuffle::run), OWN, (0, 2), lasts false, threads true;
    Columns: Own(columns::run), OWN, ONE, lasts false, threads true;
    Services: Own(services::run), OWN, ONE, lasts true, threads true;
}

/// The body of the process of one of Weir's own programs.
///
/// # Errors
/// The arguments are none, or the process that reads its lines is gone.
pub fn run_kernel(application: Application, arguments: &[String]) -> io::Result<()> {
    match (entry(application).how, Given::read(arguments)) {
        (How::Kernel(kernel), Some((given, rest))) => {
            kernel(&given, rest, &mut Report::new(io::stdout().lock()))
        }
        _ => Err(io::Error::other(format!(
            "`workload kernel {application}` is run by `weir workload run`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_that_of_its_application() {
        for application in Application::ALL {
            assert_eq!(entry(application).application, application);
        }
    }
}
