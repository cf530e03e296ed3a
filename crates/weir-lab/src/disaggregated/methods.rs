//! What each method takes for one access, part by part (DirectCXL, USENIX ATC 2022, sections 2 and 4.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::diagnostic::Mistakes;
use weir_model::toml::{self, Table};
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

use crate::sourced::value;

/// The figures that come with Weir.
pub const BUILTIN: &str = include_str!("methods.toml");
/// What the kernel swaps.
pub const PAGE: Bytes = Bytes::kib(4);

weir_model::named! {
    /// A way to memory.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Method {
        /// Loads and stores of local memory.
        Local = "local",
        /// Loads and stores of a CXL device.
        Cxl = "cxl",
        /// One-sided reads over RDMA.
        Rdma = "rdma",
        /// Requests to a key-value store over RDMA.
        KeyValue = "key-value",
        /// Pages that the kernel swaps over RDMA.
        Swap = "swap",
    }
}

/// The times of one access, by what takes them. Their sum is that of the access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// Caches of the core, as long as a hit of the last level.
    pub cache: Nanos,
    /// Waiting for a free entry of the last-level cache's misses.
    pub stall: Nanos,
    /// Link, switch and controllers of a CXL device.
    pub cxl: Nanos,
    /// Memory, and transfers between it and an adapter.
    pub memory: Nanos,
    /// Adapters and network.
    pub network: Nanos,
    /// The library that posts requests, the server of a key-value store, or the kernel.
    pub software: Nanos,
    /// Copies between buffers.
    pub copy: Nanos,
}

impl Parts {
    /// All of it.
    pub fn total(&self) -> Nanos {
        self.cache + self.stall + self.cxl + self.memory + self.network + self.software + self.copy
    }
}

/// What methods over a network take, each figure with its source in its file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Methods {
    /// Both adapters and the network, there and back.
    pub round_trip: Nanos,
    /// A transfer between an adapter and memory.
    pub transfer: Nanos,
    /// Rate of the network.
    pub rate: GbPerSec,
    /// Rate of the adapter's bus.
    pub bus: GbPerSec,
    /// The library, for a request.
    pub post: Nanos,
    /// Rate of copies between the program's memory and the adapter's.
    pub copy: GbPerSec,
    /// The server of a key-value store, for a request.
    pub request: Nanos,
    /// The kernel, for a page.
    pub fault: Nanos,
    /// Local memory of a program that swaps.
    pub resident: Bytes,
    /// What a Get of the paper's database takes besides its value.
    pub own: Nanos,
    /// Bytes of its value.
    pub value: Bytes,
    /// Misses of the caches for each Get.
    pub missing: f64,
}

fn moving(bytes: Bytes, rate: GbPerSec) -> Nanos {
    Nanos(bytes.get() as f64 / rate.get())
}

impl Methods {
    /// The figures that come with Weir.
    ///
    /// # Errors
    /// None; a test reads them.
    pub fn builtin() -> Result<Self, Mistakes> {
        Self::read("methods.toml", BUILTIN)
    }

    /// Reads a file of figures; `file` names it in messages.
    ///
    /// # Errors
    /// Every mistake in the text, at its line and column.
    pub fn read(file: &str, text: &str) -> Result<Self, Mistakes> {
        toml::read(file, text, "a file of methods", read)
    }

    /// Adapters, network and both transfers of a one-sided read, without the library: what hardware takes.
    pub fn wire(&self, bytes: Bytes) -> Parts {
        let beyond = Bytes(bytes.get().saturating_sub(LINE_BYTES));
        Parts {
            memory: (self.transfer + moving(beyond, self.bus)) * 2.0,
            network: self.round_trip + moving(beyond, self.rate),
            ..Parts::default()
        }
    }

    /// A one-sided read of this many bytes into the program's own memory.
    pub fn rdma(&self, bytes: Bytes) -> Parts {
        Parts {
            software: self.post,
            copy: moving(bytes, self.copy),
            ..self.wire(bytes)
        }
    }

    /// A request for a value of this many bytes: one write to the server, and one back.
    pub fn key_value(&self, bytes: Bytes) -> Parts {
        let (there, back) = (self.wire(Bytes(LINE_BYTES)), self.wire(bytes));
        Parts {
            memory: there.memory + back.memory,
            network: there.network + back.network,
            software: self.request,
            ..Parts::default()
        }
    }

    /// A page that is not resident. The kernel posts its request itself.
    pub fn swap(&self) -> Parts {
        Parts {
            software: self.fault,
            ..self.wire(PAGE)
        }
    }
}

fn read(root: &Table<'_>) -> Option<Methods> {
    root.expect_kind("methods", "a file of methods")?;
    let [adapter, library, server, swap, get] =
        ["adapter", "library", "server", "swap", "get"].map(|key| root.section(key));
    let time = |of: &Table<'_>, key| value(of, key, "100 ns", Nanos(0.0)..=Nanos(1e9));
    let rate = |of: &Table<'_>, key| value(of, key, "7 GB/s", GbPerSec(0.001)..=GbPerSec(10_000.0));
    let (round_trip, transfer) = (time(&adapter, "round_trip"), time(&adapter, "transfer"));
    let (network, bus) = (rate(&adapter, "rate"), rate(&adapter, "bus"));
    let (post, copy) = (time(&library, "post"), rate(&library, "copy"));
    let (request, fault) = (time(&server, "request"), time(&swap, "fault"));
    let resident = value(&swap, "resident", "100 MB", PAGE..=Bytes(1 << 50));
    let own = time(&get, "own");
    let bytes = value(&get, "value", "2 KiB", Bytes(1)..=Bytes::gib(1));
    let missing = value(&get, "missing", "0.25", 0.0..=1e6);
    for table in [&adapter, &library, &server, &swap, &get, root] {
        table.done("a file of methods");
    }
    Some(Methods {
        round_trip: round_trip?,
        transfer: transfer?,
        rate: network?,
        bus: bus?,
        post: post?,
        copy: copy?,
        request: request?,
        fault: fault?,
        resident: resident?,
        own: own?,
        value: bytes?,
        missing: missing?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_that_come_with_weir_are_read() {
        let methods = Methods::builtin().unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let line = methods.wire(Bytes(LINE_BYTES)).total();
        assert!((line.get() - 27_050.0).abs() < 1.0, "{line}");
    }

    #[test]
    fn more_bytes_never_take_less_and_parts_add_up() {
        let methods = Methods::builtin().unwrap();
        let sizes = (6..=20).map(|n| Bytes(1 << n));
        for of in [Methods::wire, Methods::rdma, Methods::key_value] {
            let times: Vec<Nanos> = sizes
                .clone()
                .map(|size| of(&methods, size).total())
                .collect();
            assert!(times.windows(2).all(|pair| pair[0] <= pair[1]), "{times:?}");
        }
        let parts = methods.rdma(PAGE);
        let sum = parts.memory + parts.network + parts.software + parts.copy;
        assert_eq!(parts.total(), sum);
    }

    #[test]
    fn a_figure_without_a_source_or_out_of_range_is_a_mistake_that_names_its_key() {
        let wrong = [
            (
                "source = \"section 4.1: 2129 cycles (DIR-004)\"",
                "",
                "source",
            ),
            ("\"21290 ns\"", "\"-1 ns\"", "round_trip"),
            ("\"100 MB\"", "\"1 B\"", "resident"),
            ("[swap]", "[swop]", "swop"),
        ];
        for (from, to, names) in wrong {
            let text = BUILTIN.replace(from, to);
            assert_ne!(text, BUILTIN);
            let error = Methods::read("mine.toml", &text).unwrap_err().to_string();
            assert!(
                error.contains(names) && error.contains("mine.toml"),
                "{error}"
            );
        }
    }
}
