//! Workloads that hosts run and that have no description, so that no model runs them; and groups of workloads.

use super::{Application, RealProgram};
use crate::diagnostic::closest;
use crate::units::Bytes;

/// A workload without a description.
#[derive(Debug, Clone, Copy)]
pub struct Hosted {
    /// Its name.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    application: Application,
    variant: &'static str,
    mib: u64,
    record: u64,
}

/// The skew of YCSB.
const SKEW: f64 = 0.99;

const fn of(
    name: &'static str,
    (application, variant): (Application, &'static str),
    (mib, record): (u64, u64),
    summary: &'static str,
) -> Hosted {
    Hosted {
        name,
        summary,
        application,
        variant,
        mib,
        record,
    }
}

use Application::{Files, Memcached, Postgres, Redis, Services, TpcDs};

/// All of them, by name. Records of YCSB have ten fields of 100 bytes; those of Redis are as large as in its descriptions.
#[rustfmt::skip]
pub const HOSTED: &[Hosted] = &[
    of("files-fileserver", (Files, "fileserver"), (2048, 128 << 10), "A server of files, as filebench has it: 128 KiB, reads and writes 1:2"),
    of("files-varmail", (Files, "varmail"), (1024, 16 << 10), "A server of mail, as filebench has it: 16 KiB, reads, and writes with fsync 1:1"),
    of("memcached-ycsb-a", (Memcached, "a"), (5120, 1000), "memcached, half reads and half updates (YCSB A)"),
    of("memcached-ycsb-b", (Memcached, "b"), (5120, 1000), "memcached, 95 % reads and 5 % updates (YCSB B)"),
    of("memcached-ycsb-c", (Memcached, "c"), (5120, 1000), "memcached, reads (YCSB C)"),
    of("memcached-ycsb-d", (Memcached, "d"), (5120, 1000), "memcached, reads of the newest keys and 5 % inserts (YCSB D)"),
    of("memcached-ycsb-e", (Memcached, "e"), (5120, 1000), "Scans (YCSB E), which memcached has not: refused, see redis-ycsb-e"),
    of("memcached-ycsb-f", (Memcached, "f"), (5120, 1000), "memcached, half reads and half reads that write back (YCSB F)"),
    of("postgres-tpcb", (Postgres, "tpcb"), (4096, 100), "PostgreSQL, transactions of the kind of TPC-B by pgbench"),
    of("redis-ycsb-d", (Redis, "d"), (5340, 624), "Redis, reads of the newest keys and 5 % inserts (YCSB D)"),
    of("redis-ycsb-e", (Redis, "e"), (5340, 624), "Redis, scans of up to 100 records by a sorted set, and 5 % inserts (YCSB E)"),
    of("redis-ycsb-f", (Redis, "f"), (5340, 624), "Redis, half reads and half reads that write back (YCSB F)"),
    of("service-chain", (Services, "usual"), (512, 64), "Five services that call each other and think, as microservices do"),
    of("tpcds", (TpcDs, "usual"), (2048, 64), "DuckDB, the 99 queries of TPC-DS"),
];

/// Workloads that run one after the other, for the types of applications of CXL-Interplay (DAC 2025).
pub const GROUPS: &[(&str, &str, &[&str])] = &[
    (
        "type-a",
        "Group: files in the page cache, to run with traffic on CXL",
        &["files-fileserver", "files-varmail"],
    ),
    (
        "type-b",
        "Group: applications on CXL, to run with traffic of an SSD",
        MEMORY,
    ),
    (
        "type-c",
        "Group: applications on DRAM, to run with traffic on CXL",
        MEMORY,
    ),
    (
        "type-d",
        "Group: applications on CXL, to run with traffic on DRAM",
        MEMORY,
    ),
];

const MEMORY: &[&str] = &["rocksdb-get", "pr-kron", "redis-ycsb-a", "llama-decode"];

impl Hosted {
    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Hosted> {
        HOSTED.iter().find(|hosted| hosted.name == name)
    }

    /// Bytes of its data.
    pub fn bytes(&self) -> Bytes {
        Bytes::mib(self.mib)
    }

    /// Names that are close to one that is not there.
    pub fn close_to(name: &str) -> Vec<&'static str> {
        let groups = GROUPS.iter().map(|(name, _, _)| *name);
        closest(name, HOSTED.iter().map(|hosted| hosted.name).chain(groups))
    }

    /// What a host runs.
    pub fn real(&self) -> RealProgram {
        RealProgram {
            name: self.name.to_owned(),
            application: self.application,
            variant: self.variant,
            threads: 1,
            bytes: self.bytes(),
            record: Bytes(self.record),
            skew: SKEW,
            updates: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workloads;

    #[test]
    fn names_are_unique_and_each_has_its_variant() {
        let library = Workloads::builtin();
        for hosted in HOSTED {
            assert!(library.get(hosted.name).is_none(), "{}", hosted.name);
            assert!(
                hosted.application.variants().contains(&hosted.variant),
                "{}",
                hosted.name
            );
        }
        assert!(HOSTED.windows(2).all(|two| two[0].name < two[1].name));
    }

    #[test]
    fn groups_name_what_a_host_runs() {
        let library = Workloads::builtin();
        for name in GROUPS.iter().flat_map(|(_, _, names)| *names) {
            let described = library.get(name).and_then(|workload| workload.real());
            assert!(
                described.is_some() || Hosted::named(name).is_some(),
                "{name}"
            );
        }
    }
}
