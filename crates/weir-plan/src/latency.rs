//! `weir plan latency`: how long a load from a pool takes, as the sum of what it passes (Pond, Figure 7).
//!
//! A load passes the core and its fabric, a CXL port at each end of every link, the links, perhaps a switch, the
//! check and the network of the pool's device, and the DRAM. Queues are left out: the sums are of an idle pool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::plan::distinct;
use weir_lab::view::{Part, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::units::Nanos;

use crate::PlanError;
use crate::error::within;

/// Sockets of the largest pool behind one device without a retimer: longer traces than 500 mm need one (Pond,
/// section 4.1).
const WITHOUT_RETIMER: u32 = 8;
/// Sockets of the largest pool behind one device: it has a port of eight lanes for each (Pond, Figure 6).
const WITHOUT_SWITCH: u32 = 16;
/// Sockets of the largest pool of Pond.
const MOST: u32 = 64;
/// What one load from a device behind a port takes longer than one from local memory, as Intel's study measured it
/// (A Case Against CXL Memory Pooling, section 1).
const MEASURED: Nanos = Nanos(140.0);

/// How long a load from a pool takes, by the components it passes.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir plan latency
  weir plan latency --sockets 8,16 --retimer '10 ns' --format csv")]
pub struct Latency {
    /// Sizes of pools, in sockets that share one.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N",
        default_value = "8,16,32,64"
    )]
    pub sockets: Vec<u32>,
    /// Core, last-level cache and fabric of a processor.
    #[arg(long, value_name = "TIME", default_value_t = Nanos(40.0))]
    pub core: Nanos,
    /// Memory controller and DRAM.
    #[arg(long, value_name = "TIME", default_value_t = Nanos(45.0))]
    pub dram: Nanos,
    /// A CXL port, both ways together.
    #[arg(long, value_name = "TIME", default_value_t = Nanos(25.0))]
    pub port: Nanos,
    /// A link of up to 500 mm, both ways together.
    #[arg(long, value_name = "TIME", default_value_t = Nanos(5.0))]
    pub flight: Nanos,
    /// A retimer between two links, both ways together.
    #[arg(long, value_name = "TIME", default_value_t = Nanos(20.0))]
    pub retimer: Nanos,
    /// The device's check of address and permission.
    #[arg(long, value_name = "TIME", default_value_t = Nanos(5.0))]
    pub acl: Nanos,
    /// The network on the chip of a device or a switch.
    #[arg(long, value_name = "TIME", default_value_t = Nanos(10.0))]
    pub noc: Nanos,
    /// The arbitration of a switch.
    #[arg(long, value_name = "TIME", default_value_t = Nanos(10.0))]
    pub arbitration: Nanos,
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            sockets: vec![8, 16, 32, 64],
            core: Nanos(40.0),
            dram: Nanos(45.0),
            port: Nanos(25.0),
            flight: Nanos(5.0),
            retimer: Nanos(20.0),
            acl: Nanos(5.0),
            noc: Nanos(10.0),
            arbitration: Nanos(10.0),
        }
    }
}

/// How a pool is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    /// Whether links need a retimer.
    pub retimers: bool,
    /// Whether a switch stands between sockets and device.
    pub switch: bool,
}

impl Build {
    /// As Pond builds a pool for this many sockets: one device with a port for each socket, above 16 sockets behind
    /// switches.
    pub fn of(sockets: u32) -> Self {
        Self {
            retimers: sockets > WITHOUT_RETIMER,
            switch: sockets > WITHOUT_SWITCH,
        }
    }

    /// With a switch at every size, as pools are built from devices with one port.
    pub fn switched(sockets: u32) -> Self {
        Self {
            switch: true,
            ..Self::of(sockets)
        }
    }
}

/// A load from one kind of memory, by what it passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPath {
    /// `local`, `one device`, `switch and devices`, `switch only`.
    pub memory: String,
    /// Sockets that share it.
    pub sockets: u32,
    /// Core, last-level cache and fabric.
    pub core: Nanos,
    /// CXL ports.
    pub ports: Nanos,
    /// Links and retimers.
    pub links: Nanos,
    /// Network and arbitration of the switch, without its ports.
    pub switch: Nanos,
    /// The device's check and network.
    pub device: Nanos,
    /// Memory controller and DRAM.
    pub dram: Nanos,
    /// All of it.
    pub total: Nanos,
    /// What it takes longer than local memory.
    pub added: Nanos,
    /// As a multiple of local memory.
    pub times_local: f64,
}

/// Latencies of pools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolLatencies {
    /// Local memory, then pools in the order they were asked for.
    pub paths: Vec<LoadPath>,
}

impl Latency {
    /// A load from local memory.
    pub fn local(&self) -> Nanos {
        self.core + self.dram
    }

    /// A load from a pool.
    pub fn load(&self, memory: &str, sockets: u32, build: Build) -> LoadPath {
        let hops = if build.switch { 2.0 } else { 1.0 };
        // A retimer joins two links of up to 500 mm.
        let link = match build.retimers {
            true => self.flight * 2.0 + self.retimer,
            false => self.flight,
        };
        let switch = match build.switch {
            true => self.noc + self.arbitration,
            false => Nanos(0.0),
        };
        let path = LoadPath {
            memory: memory.to_owned(),
            sockets,
            core: self.core,
            ports: self.port * (2.0 * hops),
            links: link * hops,
            switch,
            device: self.acl + self.noc,
            dram: self.dram,
            total: Nanos(0.0),
            added: Nanos(0.0),
            times_local: 1.0,
        };
        self.summed(path)
    }

    fn summed(&self, path: LoadPath) -> LoadPath {
        let total = path.core + path.ports + path.links + path.switch + path.device + path.dram;
        LoadPath {
            total,
            added: total - self.local(),
            times_local: total / self.local(),
            ..path
        }
    }

    /// Local memory and each pool, also the pools of up to 16 sockets with a switch in place of a device of many ports.
    ///
    /// # Errors
    /// A pool has fewer than 2 or more than 64 sockets, or local memory takes no time.
    pub fn run(&self) -> Result<PoolLatencies, PlanError> {
        within(
            "the local latency",
            self.local().get(),
            (1e-3, 1e9),
            "above 0 ns and at most 1 s",
        )?;
        for sockets in distinct(self.sockets.iter().copied()) {
            let bounds = (2.0, f64::from(MOST));
            within(
                "a pool's size",
                f64::from(sockets),
                bounds,
                "2 to 64 sockets",
            )?;
        }
        let none = Nanos(0.0);
        let local = LoadPath {
            ports: none,
            links: none,
            device: none,
            ..self.load("local", 1, Build::of(1))
        };
        let mut paths = vec![self.summed(local)];
        for sockets in distinct(self.sockets.iter().copied()) {
            let build = Build::of(sockets);
            let memory = match build.switch {
                true => "switch and devices",
                false => "one device",
            };
            paths.push(self.load(memory, sockets, build));
            if !build.switch {
                paths.push(self.load("switch only", sockets, Build::switched(sockets)));
            }
        }
        Ok(PoolLatencies { paths })
    }
}

const PARTS: [Part; 6] = [
    Part::new("core", "core and fabric", 0),
    Part::new("ports", "CXL ports", 1),
    Part::new("links", "links and retimers", 2),
    Part::new("switch", "switch", 3),
    Part::new("device", "device", 4),
    Part::new("dram", "DRAM", 5),
];

impl Outcome for PoolLatencies {
    const SCHEMA: &'static str = "weir/plan-latency/1";
    const TITLE: &'static str = "Latency of pools";
    const WORDS: &'static str =
        "Each bar is one load on an idle pool, made of what the load passes.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let is_pool = |path: &&LoadPath| path.sockets > 1 && path.memory != "switch only";
        let pools: Vec<String> = (self.paths.iter().filter(is_pool))
            .map(|path| {
                format!(
                    "{:.0} from a pool of {} sockets ({:.2}x local memory)",
                    path.total, path.sockets, path.times_local
                )
            })
            .collect();
        let least = self.paths.iter().find(is_pool).map(|path| path.added);
        let mut notes = vec![note("a load takes", pools.join(", "))];
        if let Some(least) = least.filter(|least| *least < MEASURED) {
            let text = format!(
                "Intel's study measured {MEASURED} more than local memory on a device of one host (A Case Against CXL \
                 Memory Pooling, section 1); these components add {least:.0} for the smallest pool"
            );
            notes.push(note("measured", text));
        }
        notes
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let columns = vec![
            col("memory"),
            col("sockets"),
            col("core"),
            col("ports"),
            col("links"),
            col("switch"),
            col("device"),
            col("dram"),
            col("total"),
            col("added"),
            col("times_local").head("x local").places(2),
        ];
        let stacks = View::stacks(
            "paths",
            "What a load passes",
            &["memory"],
            "sockets",
            (&PARTS, "latency (ns)"),
        );
        vec![View::table("paths", "What a load passes", columns), stacks]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn totals(latency: &Latency) -> Vec<(String, u32, f64)> {
        let paths = latency.run().unwrap().paths.into_iter();
        paths
            .map(|path| (path.memory, path.sockets, path.total.get()))
            .collect()
    }

    #[test]
    fn the_published_components_give_the_published_sums() {
        let expected = [
            ("local", 1, 85.0),
            ("one device", 8, 155.0),
            ("switch only", 8, 230.0),
            ("one device", 16, 180.0),
            ("switch only", 16, 280.0),
            ("switch and devices", 32, 280.0),
            ("switch and devices", 64, 280.0),
        ];
        let expected: Vec<_> = expected
            .map(|(name, sockets, ns)| (name.to_owned(), sockets, ns))
            .into();
        assert_eq!(totals(&Latency::default()), expected);
    }

    #[test]
    fn a_pool_of_one_socket_or_of_too_many_is_refused() {
        for sockets in [0, 1, 65] {
            let latency = Latency {
                sockets: vec![sockets],
                ..Latency::default()
            };
            let message = latency.run().unwrap_err().to_string();
            assert!(message.contains("2 to 64 sockets"), "{message}");
        }
    }

    proptest! {
        #[test]
        fn a_larger_pool_is_never_nearer_and_parts_sum_up(
            times in prop::array::uniform8(0.0..200.0f64),
        ) {
            let [core, dram, port, flight, retimer, acl, noc, arbitration] = times.map(Nanos);
            let latency = Latency {
                sockets: vec![2, 8, 9, 16, 17, 64],
                core: core + Nanos(1.0), dram, port, flight, retimer, acl, noc, arbitration,
            };
            let paths = latency.run().unwrap().paths;
            let pools: Vec<_> = paths.iter().filter(|path| path.memory != "switch only").collect();
            for pair in pools.windows(2) {
                prop_assert!(pair[0].total.get() <= pair[1].total.get() + 1e-9);
            }
            for path in &paths {
                let sum = path.core + path.ports + path.links + path.switch + path.device + path.dram;
                prop_assert!((sum - path.total).get().abs() < 1e-9);
                prop_assert!(path.added.get() >= -1e-9);
            }
        }
    }
}
