//! Which pages of running processes are touched: by sampled loads, DAMON, idle-page bits, or accessed bits of whole mappings.
//!
//! | file | content |
//! |---|---|
//! | `maps` | resident pages of a process and what they hold |
//! | `samples` | loads that the processor samples (PEBS, IBS) |
//! | `damon` | the kernel's data access monitor |
//! | `idle` | idle-page bits of physical pages |
//! | `referenced` | accessed bits, counted for each mapping |
//! | `of_objects` | what was seen, by object of the process |
//! | `written` | which pages are written |

pub(crate) mod damon;
mod idle;
mod maps;
mod of_objects;
mod referenced;
mod samples;
mod written;

use std::time::{Duration, Instant};

use weir_model::capability::Unavailable;
use weir_model::heat::SeenPages;
use weir_model::scope::Scope;
use weir_model::units::{Bytes, Nanos};

use crate::root::Root;
use crate::steer::group::processes;
use crate::steer::scope::group_of;

use damon::Damon;
use idle::Idle;
use maps::Resident;
use samples::Samples;

pub use damon::{Regions, end_left};
pub use of_objects::{ObjectHeat, Special, of_objects, special};
pub use written::{clear_written, sees_written, written};

/// Parts of an address space that are distinguished, about: more take time in each interval.
const GRANULES: u64 = 1 << 16;
/// More processes than this are not watched at once: DAMON has a kernel thread for each.
const MOST_PROCESSES: usize = 16;
/// The time between two calls of what waits, within a window.
const PAUSE: Duration = Duration::from_millis(20);

/// What watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// Loads that the processor samples with their addresses (PEBS, Intel SDM volume 3; IBS, AMD PPR).
    Samples,
    /// DAMON, through `/sys/kernel/mm/damon/admin` (kernel documentation, admin-guide/mm/damon/usage.rst; Linux 6.2).
    Damon,
    /// Idle-page bits (kernel documentation, admin-guide/mm/idle_page_tracking.rst).
    IdleBits,
    /// Accessed bits, of which the kernel says only how many of each mapping are set (proc(5), `clear_refs`, `smaps`).
    AccessedBits,
}

/// The processes of a scope, those of a control group with all below it.
///
/// # Errors
/// There is none, or too many.
pub fn processes_of(root: &Root, scope: &Scope) -> Result<Vec<u32>, Unavailable> {
    let found = match scope {
        Scope::Pid(process) => match root.exists(&format!("/proc/{process}/maps")) {
            true => vec![*process],
            false => Vec::new(),
        },
        _ => processes(root, &group_of(root, scope)?),
    };
    match found.len() {
        0 => Err(Unavailable::because(match scope {
            Scope::Pid(process) => format!("there is no process {process}"),
            scope => format!("{scope} has no processes"),
        })),
        n if n > MOST_PROCESSES => Err(Unavailable::because(format!(
            "{scope} has {n} processes; at most {MOST_PROCESSES} are watched at once"
        ))),
        _ => Ok(found),
    }
}

#[derive(Debug)]
enum Watching {
    Samples(Samples),
    Damon(Damon),
    Idle(Idle),
    Referenced,
}

/// Processes that are watched, until this is dropped.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    resident: Vec<Resident>,
    watching: Watching,
    granule: Bytes,
    /// The time that a look covers, and looks since pages were taken.
    look: Nanos,
    looks: u32,
}

impl Watch {
    /// Begins to watch with the best mechanism that this kernel has.
    ///
    /// # Errors
    /// It has none, or this user may not: each with its reason.
    pub fn begin(
        root: &Root,
        processes: &[u32],
        look: Nanos,
        regions: Regions,
        samples_per_s: u64,
    ) -> Result<(Self, Vec<Unavailable>), Unavailable> {
        let page = crate::memory::base_page() as u64;
        let mut resident = Vec::new();
        for (space, &process) in processes.iter().enumerate() {
            resident.push(Resident::open(root, space as u32, process, page)?);
        }
        let all: u64 = resident.iter().map(Resident::bytes).sum();
        let granule = (all / GRANULES).next_power_of_two().max(page);
        for of in &mut resident {
            of.divide(root, granule)?;
        }
        let mut missing = Vec::new();
        let mut lacks = |what: &str, why: Unavailable| {
            missing.push(Unavailable::because(format!("{what}: {why}")));
        };
        let watching = (Samples::begin(root, samples_per_s).map(Watching::Samples))
            .or_else(|why| {
                lacks("sampled loads", why);
                Damon::begin(root, processes, look, regions).map(Watching::Damon)
            })
            .or_else(|why| {
                lacks("DAMON", why);
                Idle::begin(root).map(Watching::Idle)
            })
            .or_else(|why| {
                lacks("idle-page bits", why);
                referenced::clear(root, &resident).map(|()| Watching::Referenced)
            });
        let watching = match watching {
            Ok(watching) => watching,
            Err(why) => {
                lacks("accessed bits", why);
                let all: Vec<String> = missing.iter().map(ToString::to_string).collect();
                return Err(Unavailable::because(format!(
                    "nothing here sees which pages a process touches: {}",
                    all.join("; ")
                )));
            }
        };
        let mut watch = Self {
            root: root.clone(),
            resident,
            watching,
            granule: Bytes(granule),
            look,
            looks: 0,
        };
        if let Watching::Idle(idle) = &mut watch.watching {
            idle.mark(&watch.resident)?;
        }
        Ok((watch, missing))
    }

    /// What watches.
    pub fn mechanism(&self) -> Mechanism {
        match self.watching {
            Watching::Samples(_) => Mechanism::Samples,
            Watching::Damon(_) => Mechanism::Damon,
            Watching::Idle(_) => Mechanism::IdleBits,
            Watching::Referenced => Mechanism::AccessedBits,
        }
    }

    /// The least part of an address space that is distinguished.
    pub fn granule(&self) -> Bytes {
        self.granule
    }

    /// Reads what was sampled since the last call. Without it the kernel's rings are full after some tenths of a second.
    pub fn drain(&mut self) {
        if let Watching::Samples(samples) = &mut self.watching {
            samples.look(&mut self.resident, self.granule.get());
        }
    }

    /// Looks once. DAMON answers at the end of its own interval, for which this waits; samples and bits are read by
    /// [`take`](Self::take). Returns whether DAMON had an answer.
    ///
    /// # Errors
    /// The processes have ended, or the kernel does not answer.
    pub fn look(&mut self) -> Result<bool, Unavailable> {
        let seen = match &mut self.watching {
            Watching::Damon(damon) => damon.look(&self.root, &mut self.resident)?,
            _ => true,
        };
        self.looks += u32::from(seen);
        Ok(seen)
    }

    /// The regions that DAMON had at the last look.
    pub fn regions(&self) -> Option<usize> {
        match &self.watching {
            Watching::Damon(damon) => Some(damon.regions()),
            _ => None,
        }
    }

    /// What was seen in the interval since the last call, of the pages that were resident at its begin.
    ///
    /// Where some of DAMON's own intervals were missed or samples were lost, touches of the others stand for them.
    ///
    /// # Errors
    /// The processes have ended.
    pub fn take(&mut self, interval: Nanos) -> Result<Vec<SeenPages>, Unavailable> {
        self.drain();
        match &mut self.watching {
            Watching::Idle(idle) => idle.read(&mut self.resident)?,
            Watching::Referenced => referenced::read(&self.root, &mut self.resident),
            Watching::Samples(_) | Watching::Damon(_) => {}
        }
        let covered = self.look.get() * f64::from(self.looks);
        let scale = match &mut self.watching {
            Watching::Samples(samples) => samples.scale(),
            Watching::Damon(_) if covered > 0.0 => interval.get() / covered,
            _ => 1.0,
        };
        self.looks = 0;
        let mut seen = Vec::new();
        let mut ended = None;
        let granule = self.granule.get();
        self.resident.retain_mut(|of| {
            of.seen(scale, &mut seen);
            // Mappings change; what is resident now is looked at next.
            match of.divide(&self.root, granule) {
                Ok(()) => true,
                Err(why) => {
                    ended = Some(why);
                    false
                }
            }
        });
        match ended {
            Some(why) if self.resident.is_empty() => return Err(why),
            _ => {}
        }
        match &mut self.watching {
            Watching::Idle(idle) => idle.mark(&self.resident)?,
            Watching::Referenced => referenced::clear(&self.root, &self.resident)?,
            Watching::Samples(_) | Watching::Damon(_) => {}
        }
        Ok(seen)
    }

    /// Watches for a window. `each` is called every few tens of milliseconds, and ends the window without an answer where it
    /// says no. Returns what was seen and how long the window was: where DAMON has no answer for long, it is longer.
    ///
    /// # Errors
    /// The processes have ended, or the kernel does not answer.
    pub fn window(
        &mut self,
        length: Duration,
        mut each: impl FnMut() -> bool,
    ) -> Result<Option<(Vec<SeenPages>, Duration)>, Unavailable> {
        let began = Instant::now();
        let is_damon = self.mechanism() == Mechanism::Damon;
        let look = Duration::from_nanos(self.look.get() as u64);
        let mut looked = !is_damon;
        loop {
            if !each() {
                return Ok(None);
            }
            let rest = length.saturating_sub(began.elapsed());
            if looked && rest.is_zero() {
                break;
            }
            // A window without a look would seem cold. DAMON answers when its own interval ends.
            if is_damon && (!looked || rest >= look / 2) {
                looked |= self.look()?;
            } else {
                self.drain();
            }
            let rest = length.saturating_sub(began.elapsed());
            std::thread::sleep(if looked { PAUSE.min(rest) } else { PAUSE });
        }
        let took = began.elapsed();
        let seen = self.take(Nanos(took.as_nanos() as f64))?;
        Ok(Some((seen, took)))
    }

    /// Stops watching and restores the kernel's settings.
    ///
    /// # Errors
    /// A setting could not be restored.
    pub fn end(self) -> Result<(), Unavailable> {
        match self.watching {
            Watching::Damon(damon) => damon.end(&self.root),
            _ => Ok(()),
        }
    }
}
