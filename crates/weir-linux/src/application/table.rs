//! What each application needs: a line for each.

use std::io;
use std::path::PathBuf;

use weir_model::units::Bytes;
use weir_model::workload::{Application, RealProgram};

use super::Trouble;
use super::program::Task;
use super::server::{self, Served};
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
    Redis: Server(&server::REDIS), "apt-get install redis-server", ONE, lasts true, threads false;
    Memcached: Server(&server::MEMCACHED), "apt-get install memcached", ONE, lasts true, threads true;
    Sqlite: Script(include_str!("sqlite.py")), "apt-get install python3", (1, 2), lasts false, threads false;
    DuckDb: Script(include_str!("duckdb.py")), "apt-get install python3 python3-pip; pip install duckdb", (1, 22), lasts false, threads true;
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

/// Whether what a program needs is installed. Nothing of it stays.
///
/// # Errors
/// It is not, with the line that installs it; or the variant is none of the application.
pub fn ready(program: &RealProgram) -> Result<(), Trouble> {
    if (program.application, program.variant) == (Application::Memcached, "e") {
        return Err(Trouble::Request(
            "memcached has no scans, of which YCSB E consists; redis-ycsb-e scans by a sorted set"
                .into(),
        ));
    }
    match entry(program.application).how {
        How::Server(_) => server::installed(program.application).map(drop),
        How::Kernel(_) => Ok(()),
        How::Script(_) => Task {
            program: RealProgram {
                bytes: Bytes::mib(1),
                ..program.clone()
            },
            trials: 1,
            seconds: 1.0,
            seed: 1,
            weir: PathBuf::new(),
        }
        .check(),
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
