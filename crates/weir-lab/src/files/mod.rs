//! `weir place files`: what reads and writes of files on a slower tier take, by file system.
//!
//! FLAC (Liu et al., DIMES 2023) compares a page cache, direct access, and a cache whose pages are attached to the program's
//! buffers instead of copied. Here the copies are those of the machine: as many threads load from one tier and store
//! into another as read or write files. What the kernel does for each call and page is data ([`costs`]).

mod archive;
pub mod costs;
pub mod io;
mod outcome;

pub use archive::ArchiveRow;
pub use outcome::{CopyRow, FileTimes, GainRow, IoRow};

use serde::Serialize;
use weir_model::access::{Op, Pattern};
use weir_model::topology::{Tier, TierName};
use weir_model::units::{Bytes, GbPerSec, Nanos};

use crate::movement::{Movement, copy};
use crate::plan::{check_threads, or_usual};
use crate::{Ask, Lab, LabError, PointSpec, PointStudy as _, Study, Threads};
use costs::Costs;
use io::{Access, Copies, PAGE, State, System, io};

/// Bytes that are copied count once, as in `bench movement`.
const NAME: &str = Movement::NAME;
/// Threads of figure 3 of the paper.
const THREADS: [u32; 5] = [1, 2, 4, 8, 16];
/// The part of DRAM that dirty pages may have: `vm.dirty_ratio` is 20 (kernel documentation, sysctl/vm).
const DIRTY_PART: u64 = 5;
/// Copies of Linux on processors with fast strings, `rep movsb`, write full lines without reading them first (Intel 248966,
/// "REP string enhancement"), as those to persistent memory do (`memcpy_flushcache`).
const BY: Op = Op::NtSt;

/// Compare file systems on a slower tier: page cache, direct access, and pages that are attached (FLAC).
///
/// Copies are measured on the machine. What the kernel does for each call and page is data, measured on Linux or assumed.
#[derive(Debug, Clone, PartialEq, Serialize, clap::Args)]
#[command(after_help = "\
Examples:
  weir place files --on flac
  weir place files --on emr2s+cxl-a --threads 1,4,16
  weir place files --on flac --held 10G     a flush locks all its pages")]
pub struct Files {
    /// The tier of the files.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub tier: TierName,
    /// Thread counts, each with a file of its own [default: 1,2,4,8,16].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub threads: Vec<Threads>,
    /// Bytes of a read or write, a multiple of 4K.
    #[arg(long, value_name = "SIZE", default_value = "2M")]
    pub size: Bytes,
    /// Dirty pages that the cache may have [default: a fifth of DRAM].
    #[arg(long, value_name = "SIZE")]
    pub cache: Option<Bytes>,
    /// Bytes that a flush of the page cache holds locked at one time [default: 8M, the most of ext4].
    #[arg(long, value_name = "SIZE")]
    pub held: Option<Bytes>,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            tier: TierName::named("cxl0"),
            threads: Vec::new(),
            size: Bytes::mib(2),
            cache: None,
            held: None,
        }
    }
}

impl Ask for Files {
    type Got = FileTimes;
    const KIND: &'static str = "reads and writes of files";

    fn ask(&self, lab: &Lab<'_>) -> Result<FileTimes, LabError> {
        self.run(&lab.inside())
    }
}

impl Study for Files {
    const VERB: &'static str = "place files";
    type Output = FileTimes;

    fn run(&self, lab: &Lab<'_>) -> Result<FileTimes, LabError> {
        let topology = lab.topology();
        let find = |name: &TierName| {
            (topology.tier(name)).ok_or_else(|| LabError::unknown_tier(name, topology))
        };
        let (near, far) = (find(&TierName::dram())?, find(&self.tier)?);
        if near.name == far.name {
            let why = "--tier dram: files are on a slower tier, and their cache is in DRAM";
            return Err(LabError::Nothing(why.into()));
        }
        let whole = self.size.get().is_multiple_of(PAGE.get());
        if !whole || !(PAGE..=Bytes::gib(1)).contains(&self.size) {
            return Err(LabError::Nothing(format!(
                "--size {}: a read or write is a multiple of {PAGE}, up to 1 GiB",
                self.size
            )));
        }
        let threads = or_usual(&Threads::all(&self.threads), &THREADS);
        // One more thread flushes.
        check_threads(&threads, topology, 1)?;
        let costs = Costs::builtin().map_err(|why| LabError::Failed(why.to_string()))?;
        let costs = Costs {
            held: self.held.unwrap_or(costs.held),
            ..costs
        };
        let of = |from: &Tier, to: &Tier, threads| {
            copy(topology, from, to, BY, Pattern::Sequential, threads)
        };
        let flush = of(near, far, 1)?;
        let mut plan = vec![PointSpec::alone(NAME, flush.clone())];
        for &n in &threads {
            let cached = PointSpec::alone(NAME, of(near, near, n)?);
            plan.push(cached.clone());
            plan.push(cached.beside(flush.clone()));
            plan.push(PointSpec::alone(NAME, of(near, far, n)?));
            plan.push(PointSpec::alone(NAME, of(far, near, n)?));
        }
        let wanted = plan.len();
        let points = lab.measure(plan, &[])?;
        if points.len() < wanted {
            return Err(LabError::Stopped);
        }
        let rates = points.iter().map(|point| {
            let why = || point.error.clone().unwrap_or_else(|| "no bandwidth".into());
            let rate = point.gbps.filter(|rate| rate.get() > 0.0);
            rate.ok_or_else(|| LabError::Failed(format!("copies to {}: {}", point.tier, why())))
        });
        let rates: Vec<GbPerSec> = rates.collect::<Result<_, _>>()?;
        let (&flush, of_threads) = rates.split_first().ok_or(LabError::Stopped)?;
        let cache = (self.cache).unwrap_or(Bytes(near.capacity.get() / DIRTY_PART));
        let mut found = FileTimes::new(self.tier.clone(), self.size, cache);
        for (&threads, rates) in threads.iter().zip(of_threads.chunks(4)) {
            let &[cached, while_flushing, to_medium, from_medium] = rates else {
                continue;
            };
            found.copies.push(CopyRow {
                threads,
                cached,
                while_flushing,
                to_medium,
                from_medium,
            });
            let all = self.size.get() as f64 * f64::from(threads);
            let time = |rate: GbPerSec| Nanos(all / rate.get());
            let copies = Copies {
                threads,
                cached: time(cached),
                while_flushing: time(while_flushing),
                to_medium: time(to_medium),
                from_medium: time(from_medium),
                flush,
            };
            if threads == 1 {
                found.archives = archive::archives(&copies, self.size, &costs);
            }
            for access in Access::ALL {
                for system in System::ALL {
                    let same = system == System::Ext4Unflushed && access == Access::Read;
                    let states = match (access, system.has_cache()) {
                        (Access::Read, true) => &State::ALL[..],
                        _ => &State::ALL[..1],
                    };
                    for &state in states.iter().filter(|_| !same) {
                        let parts = io(system, access, state, self.size, &copies, &costs);
                        found.add(system, access, state, &copies, parts);
                    }
                }
            }
        }
        found.compare();
        Ok(found)
    }
}
