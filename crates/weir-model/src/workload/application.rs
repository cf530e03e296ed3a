//! The real programs that descriptions stand for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Order, Workload};
use crate::units::Bytes;

crate::named! {
    /// A real program which a Linux host runs in place of the description.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Application {
        /// Redis: a server of keys and values, on one thread.
        Redis = "redis",
        /// memcached: a cache of keys and values.
        Memcached = "memcached",
        /// SQLite in memory: filled in random order, read at random, scanned.
        Sqlite = "sqlite",
        /// DuckDB in memory: the queries of TPC-H.
        DuckDb = "duckdb",
        /// DuckDB in memory: the queries of TPC-DS.
        TpcDs = "tpcds",
        /// PostgreSQL under transactions of the kind of TPC-B or TPC-C.
        Postgres = "postgres",
        /// RocksDB by its own benchmark: filled, read, scanned.
        RocksDb = "rocksdb",
        /// A language model of random weights in llama.cpp.
        Llama = "llama",
        /// Servers of files and of mail by fio, in the page cache.
        Files = "files",
        /// PageRank, Weir's own program.
        PageRank = "pagerank",
        /// Breadth-first search, Weir's own program.
        Bfs = "bfs",
        /// Connected components, Weir's own program.
        Cc = "cc",
        /// Betweenness centrality, Weir's own program.
        Bc = "bc",
        /// Triangles, Weir's own program.
        Tc = "tc",
        /// Reduction of embeddings as in DLRM, Weir's own program.
        Embedding = "embedding",
        /// Nearest neighbours by a walk over a graph, Weir's own program.
        Neighbours = "neighbours",
        /// A shuffle as of Spark, Weir's own program.
        Shuffle = "shuffle",
        /// Operators of a column store, Weir's own program.
        Columns = "columns",
        /// A chain of services that wait for each other, Weir's own program.
        Services = "services",
    }
}

impl Application {
    /// Whether Weir sends it requests; the others run once from start to end.
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Redis | Self::Memcached)
    }

    /// What it can run; the first unless a workload says another.
    pub const fn variants(self) -> &'static [&'static str] {
        match self {
            // As described, and the core workloads of YCSB.
            Self::Redis | Self::Memcached => &["described", "a", "b", "c", "d", "e", "f"],
            Self::Postgres => &["tpcb", "tpcc"],
            Self::RocksDb => &["get", "scan"],
            Self::Llama => &["decode", "prefill"],
            Self::Files => &["fileserver", "varmail"],
            Self::PageRank | Self::Bfs | Self::Cc | Self::Bc | Self::Tc => &["kron", "uniform"],
            Self::Columns => &["scan", "build", "probe", "sort", "group", "merge", "lookup"],
            _ => &["usual"],
        }
    }
}

/// What a host runs: a program, and how large its data are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RealProgram {
    /// The name of the workload.
    pub name: String,
    /// The program.
    pub application: Application,
    /// One of [`Application::variants`].
    pub variant: &'static str,
    /// Its threads.
    pub threads: u32,
    /// Bytes of its data.
    pub bytes: Bytes,
    /// Bytes of a record.
    pub record: Bytes,
    /// The exponent of the popularity of records; 0 where all are equal.
    pub skew: f64,
    /// The share of requests that write.
    pub updates: f64,
}

impl Workload {
    /// What a host runs in place of the description.
    pub fn real(&self) -> Option<RealProgram> {
        let application = self.application?;
        let variants = application.variants();
        let said = self.variant.as_deref();
        let variant = variants.iter().find(|variant| Some(**variant) == said);
        let data = self.data()?;
        Some(RealProgram {
            name: self.name.clone(),
            application,
            variant: variant.or(variants.first())?,
            threads: self.threads,
            bytes: match application.is_server() {
                true => data.bytes,
                false => self.footprint(),
            },
            record: data.element,
            skew: if data.order == Order::Zipf {
                data.skew
            } else {
                0.0
            },
            updates: self.updates(),
        })
    }
}
