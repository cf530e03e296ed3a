//! What is asked of a server: operations, and how many of each (YCSB, Cooper et al., SoCC 2010).

use super::keys::{Keys, Popular};

/// The most records of a scan (YCSB E).
pub const LONGEST_SCAN: usize = 100;

/// Shares of operations. The others read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares {
    /// Writes of a key.
    pub updates: f64,
    /// Writes of a new key.
    pub inserts: f64,
    /// Reads of a key that write it back.
    pub modifies: f64,
    /// Reads of up to [`LONGEST_SCAN`] keys in a row.
    pub scans: f64,
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Update,
    Insert,
    Modify,
    Scan,
}

/// What is asked of the server.
#[derive(Debug, Clone)]
pub struct Mix {
    /// Keys that are loaded before.
    pub records: u64,
    /// Bytes of a value.
    pub value: usize,
    /// How many of each operation.
    pub shares: Shares,
    /// Which keys.
    pub keys: Keys,
}

impl Shares {
    /// Those of a core workload of YCSB, and which keys it asks for; else of a description, whose updates are given.
    pub fn of(variant: &str, updates: f64) -> (Self, Popular) {
        let none = Self::default();
        let shares = match variant {
            "a" => Self {
                updates: 0.5,
                ..none
            },
            "b" => Self {
                updates: 0.05,
                ..none
            },
            "c" => none,
            "d" => Self {
                inserts: 0.05,
                ..none
            },
            "e" => Self {
                inserts: 0.05,
                scans: 0.95,
                ..none
            },
            "f" => Self {
                modifies: 0.5,
                ..none
            },
            _ => Self { updates, ..none },
        };
        let popular = match variant {
            "d" => Popular::Newest,
            _ => Popular::Scattered,
        };
        (shares, popular)
    }

    /// The operation of a number from 0 to 1.
    pub(super) fn draw(&self, unit: f64) -> Operation {
        let parts = [
            (self.updates, Operation::Update),
            (self.inserts, Operation::Insert),
            (self.modifies, Operation::Modify),
            (self.scans, Operation::Scan),
        ];
        let mut left = unit;
        for (share, operation) in parts {
            if left < share {
                return operation;
            }
            left -= share;
        }
        Operation::Read
    }
}

impl Mix {
    /// Whether the keys are in a sorted set as well, which scans read.
    pub fn is_indexed(&self) -> bool {
        self.shares.scans > 0.0
    }
}
