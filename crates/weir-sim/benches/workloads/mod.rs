//! The loads of the speed benchmarks: tenants on `emr2s+cxl-a` or with a CXL-SSD, after their queues have filled.

use std::ops::Range;

use weir_model::access::{Locality, Op, Pattern};
use weir_model::counters::Counter;
use weir_model::machine::{Machine, TenantProgress};
use weir_model::platform::Library;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::Workloads;
use weir_sim::{SimMachine, SimTestbed};

/// Long enough for every queue to fill.
pub const WARM_UP: Nanos = Nanos(20_000.0);

/// One kind of traffic.
pub struct Workload {
    /// Its name in reports.
    pub name: &'static str,
    platform: &'static str,
    /// A window of some ten thousand lines, so that reading the counters is a small part of it.
    pub window: Nanos,
    parts: &'static [(Op, &'static str, Range<u32>)],
    chases: bool,
    /// Described programs of the library, their tiers and cores.
    programs: &'static [(&'static str, &'static str, Range<u32>)],
}

const PLATFORM: &str = "emr2s+cxl-a";

const fn streams(name: &'static str, parts: &'static [(Op, &'static str, Range<u32>)]) -> Workload {
    Workload {
        name,
        platform: PLATFORM,
        window: Nanos(10_000.0),
        parts,
        chases: false,
        programs: &[],
    }
}

/// Every kind; the first is the one of the speed target.
pub const ALL: [Workload; 10] = [
    streams(
        "ld_16_dram_16_cxl",
        &[(Op::Ld, "dram", 0..16), (Op::Ld, "cxl0", 16..32)],
    ),
    streams("ld_16_dram", &[(Op::Ld, "dram", 0..16)]),
    streams("ld_32_dram", &[(Op::Ld, "dram", 0..32)]),
    streams("nt_st_16_dram", &[(Op::NtSt, "dram", 0..16)]),
    streams("nt_st_16_cxl", &[(Op::NtSt, "cxl0", 0..16)]),
    Workload {
        name: "chase_32_dram",
        platform: PLATFORM,
        window: Nanos(100_000.0),
        parts: &[(Op::Ld, "dram", 0..32)],
        chases: true,
        programs: &[],
    },
    Workload {
        name: "programs_16",
        platform: PLATFORM,
        window: Nanos(10_000.0),
        parts: &[],
        chases: false,
        programs: &[
            ("mcf-like", "dram", 0..4),
            ("bfs-kron", "dram", 4..8),
            ("stream-triad", "cxl0", 8..12),
            ("memcached-etc", "dram", 12..16),
        ],
    },
    // The medium programs pages, and collects garbage.
    Workload {
        platform: "emr2s+cxl-ssd-znand",
        window: Nanos(100_000.0),
        ..streams(
            "st_8_medium_ld_8",
            &[(Op::Ld, "dram", 0..8), (Op::St, "cxl0", 8..16)],
        )
    },
    // The same load on one host of two, and on both.
    Workload {
        platform: "2xemr2s+cxl-a@switch",
        ..streams(
            "ld_one_host_of_two",
            &[(Op::Ld, "dram", 0..16), (Op::Ld, "cxl0", 16..32)],
        )
    },
    Workload {
        platform: "2xemr2s+cxl-a@switch",
        ..streams(
            "ld_two_hosts",
            &[
                (Op::Ld, "dram", 0..16),
                (Op::Ld, "cxl0", 16..32),
                (Op::Ld, "dram", 32..48),
                (Op::Ld, "cxl0", 48..64),
            ],
        )
    },
];

impl Workload {
    /// A machine on which it has run for [`WARM_UP`].
    pub fn start(&self) -> SimMachine {
        let platform = Library::builtin()
            .compose(self.platform)
            .expect("a built-in platform");
        let bed = SimTestbed::new(&platform).expect("a consistent platform");
        let mut machine = SimMachine::new(&bed, 1);
        machine.start(&self.tenants()).expect("tenants that fit");
        self.advance(&mut machine, WARM_UP);
        machine
    }

    /// Lets it run on; returns the number of lines that its cores requested.
    pub fn advance(&self, machine: &mut SimMachine, window: Nanos) -> u64 {
        let seen = machine.observe(window).expect("a running machine");
        let of = |tenant: &TenantProgress| tenant.counters.get(Counter::OffcoreAllRequests);
        let lines: Result<u64, _> = seen.tenants.iter().map(of).sum();
        lines.expect("a counter of every simulated machine")
    }

    fn tenants(&self) -> Vec<Tenant> {
        let pattern = if self.chases {
            Pattern::Chase {
                locality: Locality::TlbFriendly,
            }
        } else {
            Pattern::Sequential
        };
        let streams = self.parts.iter().map(|(op, tier, cores)| Tenant {
            name: format!("{op}@{tier} from core {}", cores.start),
            cores: cores.clone().collect(),
            ..Tenant::on_first_cores(*op, pattern, &TierName::named(*tier), 1, Bytes::mib(256))
        });
        let library = Workloads::builtin();
        let programs = self.programs.iter().map(|(name, tier, cores)| {
            let mut work = library.get(name).expect("a built-in program").clone();
            work.threads = cores.len() as u32;
            let placement = Placement::Bind(TierName::named(*tier));
            Tenant::running(work, cores.clone().collect(), placement)
        });
        streams.chain(programs).collect()
    }
}
