//! Which objects of a running process are touched, and by what that is seen.

use std::time::Duration;

use weir_linux::Root;
use weir_linux::heat::{Mechanism, ObjectHeat, Regions, Watch, of_objects, special};
use weir_linux::memory::ProcessObject;
use weir_linux::memory::objects::{objects, started};
use weir_model::units::{Bytes, Nanos};

use super::objects::objects_of;
use crate::context::Context;
use crate::failure::{Failure, Result};

/// DAMON answers this often: the kernel's own interval.
const LOOK: Nanos = Nanos(1e8);
/// Loads that the busiest processor samples in a second.
const LOADS_PER_S: u64 = 1000;

/// Smaller objects stay where they are.
const SMALL: Bytes = Bytes(1 << 20);

/// Why an object stays where it is, whatever its heat: `code`, `stack` or `small`.
pub(super) fn stays(object: &ProcessObject, resident: Bytes) -> Option<&'static str> {
    match object {
        _ if object.code => Some("code"),
        _ if object.name == "stack" => Some("stack"),
        _ if resident < SMALL => Some("small"),
        _ => None,
    }
}

/// What was seen in a window.
#[derive(Debug)]
pub(super) enum Seen {
    /// Each object, and how long the window was, in seconds.
    Objects(Vec<(ProcessObject, ObjectHeat)>, f64),
    /// A stop was requested.
    Stopped,
    /// The process has ended.
    Ended,
}

/// A process that is looked at.
#[derive(Debug)]
pub(super) struct Eyes {
    root: Root,
    process: u32,
    began: u64,
    /// `None` only while it begins anew.
    watch: Option<Watch>,
    mechanism: Mechanism,
}

impl Eyes {
    /// Begins to look, by the best means that this kernel has.
    ///
    /// # Errors
    /// There is no such process, it is not this user's, or nothing sees what it touches.
    pub fn open(root: &Root, process: u32, context: &Context) -> Result<Self> {
        objects_of(root, process)?;
        let began = started(root, process)
            .ok_or_else(|| Failure::request(format!("there is no process {process}")))?;
        let (watch, not_used) = begin(root, process)?;
        for why in not_used {
            context.note(&format!("not used: {why}"));
        }
        Ok(Self {
            root: root.clone(),
            process,
            began,
            mechanism: watch.mechanism(),
            watch: Some(watch),
        })
    }

    /// By what touches are seen, in words.
    pub fn source(&self) -> &'static str {
        match self.mechanism {
            Mechanism::Samples => "loads that the processor samples",
            Mechanism::Damon => "DAMON",
            Mechanism::IdleBits => "idle-page bits",
            Mechanism::AccessedBits => "accessed bits of the page table",
        }
    }

    /// What that does not see, of this process; `writes` are looked at besides.
    pub fn unseen(&self, writes: bool) -> Vec<String> {
        let own = match self.mechanism {
            Mechanism::Samples => {
                "stores, and loads that hit a cache: a page that is loaded rarely may seem untouched"
            }
            Mechanism::Damon => {
                "single pages: a region counts as touched alike, so that cold pages between hot ones seem hot"
            }
            Mechanism::IdleBits => "how often a page is touched within a window",
            Mechanism::AccessedBits => {
                "which pages of a mapping are touched, and how often within a window; the bits are cleared, for which reclaim \
                 may take used pages for unused"
            }
        };
        let mut all = vec![
            own.to_owned(),
            match writes {
                true => "the order of accesses, and how long cores wait",
                false => "the order of accesses, stores apart from loads, and how long cores wait",
            }
            .to_owned(),
            "parts of the heap and of other anonymous memory that the program has not named".into(),
        ];
        let special = special(&self.root, self.process).unwrap_or_default();
        if special.huge > Bytes(0) {
            all.push(format!(
                "parts of huge pages, which {} of it are: one touch counts for all of such a page",
                special.huge
            ));
        }
        if special.pinned > Bytes(0) {
            all.push(format!(
                "which objects have the {} that are pinned: such pages do not move",
                special.pinned
            ));
        }
        all
    }

    /// Looks for a window. `each` is called every few tens of milliseconds; the window ends where it says no.
    ///
    /// # Errors
    /// The kernel no longer answers, though the process runs.
    pub fn window(&mut self, length: Duration, each: impl FnMut() -> bool) -> Result<Seen> {
        let Some(watch) = &mut self.watch else {
            return Ok(Seen::Ended);
        };
        let seen = watch.window(length, each);
        let found = objects(&self.root, self.process).unwrap_or_default();
        if found.is_empty() || started(&self.root, self.process) != Some(self.began) {
            return Ok(Seen::Ended);
        }
        let (pages, took) = match seen {
            Ok(Some(seen)) => seen,
            Ok(None) => return Ok(Seen::Stopped),
            Err(why) => return Err(Failure::work(why.reason)),
        };
        if pages.is_empty() {
            // It has executed another program, whose memory is another.
            self.end()?;
            let (watch, _) = begin(&self.root, self.process)?;
            self.mechanism = watch.mechanism();
            self.watch = Some(watch);
        }
        let heat = of_objects(&found, &pages);
        Ok(Seen::Objects(
            found.into_iter().zip(heat).collect(),
            took.as_secs_f64(),
        ))
    }

    /// Stops looking, and restores the kernel's settings.
    ///
    /// # Errors
    /// A setting could not be restored.
    pub fn end(&mut self) -> Result<()> {
        let ended = self.watch.take().map_or(Ok(()), Watch::end);
        ended.map_err(|why| Failure::work(why.reason))
    }
}

fn begin(root: &Root, process: u32) -> Result<(Watch, Vec<weir_model::capability::Unavailable>)> {
    Watch::begin(root, &[process], LOOK, Regions::default(), LOADS_PER_S).map_err(Failure::from)
}
