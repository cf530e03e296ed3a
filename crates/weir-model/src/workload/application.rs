//! The real programs that descriptions stand for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
        /// DuckDB in memory: queries of the kind of TPC-H.
        DuckDb = "duckdb",
        /// PageRank on a Kronecker graph, Weir's own program.
        PageRank = "pagerank",
        /// Breadth-first search on a Kronecker graph, Weir's own program.
        Bfs = "bfs",
    }
}

impl Application {
    /// Whether it answers requests of clients; the others run once from start to end.
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Redis | Self::Memcached)
    }
}
