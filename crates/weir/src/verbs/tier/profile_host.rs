//! A profile of running processes.

use std::time::{Duration, Instant};

use weir_lab::{LabError, Outcome as _};
use weir_linux::Root;
use weir_linux::heat::{Mechanism, Watch, processes_of};
use weir_model::document::Document;
use weir_model::scope::Scope;
use weir_model::units::{Bytes, Nanos};
use weir_steer::tier::profile::{History, Profile, ProfileModel, ProfileOf, ProfileSource, Times};

use super::profile::Args;
use crate::context::Context;
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::keeping::Keeping;
use crate::nodes::here;
use crate::progress::Progress;

/// How long a profile of this host is, in seconds.
const USUAL_S: f64 = 60.0;
/// DAMON answers this often at most and at least, in seconds; ten times in an interval between.
const LOOK_S: (f64, f64) = (0.1, 1.0);
/// The interval at which a stop request is looked for.
const PAUSE: Duration = Duration::from_millis(50);

/// What bits of pages do not tell.
const SHARED: &str = "a page of a file counts also where another program touched it";

pub(super) fn bad(error: LabError) -> Failure {
    Failure::request(error.to_string())
}

/// Watches processes for a while.
///
/// # Errors
/// There are none, the kernel sees no touches, or its settings could not be restored.
pub(super) fn run(args: &Args, scope: &Scope, context: &Context) -> Result<()> {
    let host = here(context)?;
    let times = args.study.times.check(USUAL_S, LOOK_S.0).map_err(bad)?;
    if times.interval_s < LOOK_S.0 {
        return Err(Failure::request(format!(
            "--interval is at least {} s on a host, not {} s",
            LOOK_S.0, times.interval_s
        )));
    }
    let look = Nanos(1e9 * (times.interval_s / 10.0).clamp(LOOK_S.0, LOOK_S.1));
    let regions = args.regions();
    if regions.least > regions.most {
        return Err(Failure::request("--min-regions is more than --max-regions"));
    }
    if regions.sample.get() < 1e5 || regions.sample > look {
        return Err(Failure::request(format!(
            "--sample is from 100 us to {look}"
        )));
    }
    let processes = processes_of(&host.root, scope).map_err(|why| Failure::request(why.reason))?;
    let topology = host.view.topology()?;
    let keeping = Keeping::begin(context, <ProfileModel as weir_lab::Study>::VERB)?;
    let watched = watch(args, &host.root, &processes, times, look, context)?;
    let mut header = header(Profile::SCHEMA, context, &topology.processor);
    header.machine = host.identity;
    header.topology = topology;
    header.partial = watched.stopped;
    header.warnings = watched.warnings;
    let output = watched.history.profile(ProfileOf {
        source: match watched.mechanism {
            Mechanism::Samples => ProfileSource::Samples,
            Mechanism::Damon => ProfileSource::Damon,
            Mechanism::IdleBits => ProfileSource::IdleBits,
            Mechanism::AccessedBits => ProfileSource::AccessedBits,
        },
        of: scope.to_string(),
        how: match watched.mechanism {
            Mechanism::Samples => format!(
                "loads that the processor samples, {} a second on the busiest (Intel: of those that take 64 cycles or \
                 more; AMD: of all): a page that is loaded rarely may be seen as not touched",
                args.loads_per_s
            ),
            Mechanism::Damon => format!(
                "DAMON, a sample of a page of each region every {} ms, {} to {} regions ({} at the end): pages of a \
                 region count as touched alike, so cold pages between hot ones count as hot",
                regions.sample.get() / 1e6,
                regions.least,
                regions.most,
                watched.regions,
            ),
            Mechanism::IdleBits => format!("idle-page bits, read once in an interval: {SHARED}"),
            Mechanism::AccessedBits => format!(
                "accessed bits, read once in an interval: the kernel says how much of each mapping was touched and not which \
                 pages, which are taken to be the first of it; {SHARED}"
            ),
        },
        hot_s: times.hot_s,
        warm_s: times.warm_s,
        granule: watched.granule,
        most_per_s: match watched.mechanism {
            Mechanism::Samples => None,
            Mechanism::Damon => Some(1e9 / regions.sample.get()),
            Mechanism::IdleBits | Mechanism::AccessedBits => Some(1.0 / times.interval_s),
        },
    });
    let header_partial = header.partial;
    keeping.put(Document { header, output }, None)?;
    if let Some(why) = watched.not_restored {
        return Err(Failure::work(why));
    }
    match header_partial {
        true => Err(Failure::Partial(
            "stopped: the intervals that were over are kept".into(),
        )),
        false => Ok(()),
    }
}

struct Watched {
    history: History,
    mechanism: Mechanism,
    granule: Bytes,
    regions: usize,
    stopped: bool,
    warnings: Vec<String>,
    not_restored: Option<String>,
}

fn watch(
    args: &Args,
    root: &Root,
    processes: &[u32],
    times: Times,
    look: Nanos,
    context: &Context,
) -> Result<Watched> {
    let begun = Watch::begin(root, processes, look, args.regions(), args.loads_per_s);
    let (mut watch, missing) =
        begun.map_err(|why| Failure::Missing(anyhow::anyhow!("{}", why.reason)))?;
    for why in missing {
        context.note(&format!("not used: {}", why.reason));
    }
    let mut warnings = Vec::new();
    let mut history = History::new(times.interval_s);
    let mut progress = Progress::begin("tier profile", times.intervals, context.global.quiet);
    let interval = Duration::from_secs_f64(times.interval_s);
    let look = Duration::from_nanos(look.get() as u64);
    let began = Instant::now();
    let mut regions = 0;
    let mut late = 0;
    'all: while history.intervals() < times.intervals {
        let over = history.intervals();
        let due = began + interval * (over as u32 + 1);
        let mut looked = watch.mechanism() != Mechanism::Damon;
        loop {
            let now = Instant::now();
            if context.stop.requested() {
                break 'all;
            }
            // An interval without a look would seem cold.
            if looked && now >= due {
                break;
            }
            let rest = due.saturating_duration_since(now);
            if looked && (watch.mechanism() != Mechanism::Damon || rest < look / 2) {
                std::thread::sleep(PAUSE.min(rest));
                watch.drain();
                continue;
            }
            // DAMON answers when its own interval ends.
            match watch.look() {
                Ok(seen) => looked |= seen,
                Err(why) => {
                    warnings.push(format!("watching ended early: {}", why.reason));
                    break 'all;
                }
            }
            regions = watch.regions().unwrap_or(regions);
            let rest = (now + look / 2).saturating_duration_since(Instant::now());
            std::thread::sleep(rest.min(PAUSE));
        }
        // What took several intervals to see is of each of them.
        let passed = began.elapsed().as_secs_f64() / times.interval_s;
        let passed = (passed.floor() as usize).clamp(over + 1, times.intervals) - over;
        late += passed - 1;
        match watch.take(Nanos(times.interval_s * 1e9)) {
            Ok(seen) => {
                for _ in 0..passed {
                    seen.iter().for_each(|seen| history.add(seen));
                    history.next_interval();
                }
            }
            Err(why) => {
                warnings.push(format!("watching ended early: {}", why.reason));
                break;
            }
        }
        let done = history.intervals();
        let share = done as f64 / times.intervals as f64;
        progress.step(done, times.intervals, share);
    }
    progress.end();
    let (mechanism, granule) = (watch.mechanism(), watch.granule());
    // Whatever was seen, the kernel's settings are restored.
    let not_restored = watch.end().err().map(|why| why.reason);
    if late > 0 {
        warnings.push(format!(
            "{late} intervals were over before anything was seen in them, and are taken to be as those after them; give a \
             longer --interval or fewer --max-regions"
        ));
    }
    if history.intervals() == 0 {
        return Err(match not_restored.or(warnings.pop()) {
            Some(why) => Failure::work(why),
            None => Failure::Partial("stopped before the first interval was over".into()),
        });
    }
    Ok(Watched {
        stopped: history.intervals() < times.intervals && context.stop.requested(),
        history,
        mechanism,
        granule,
        regions,
        warnings,
        not_restored,
    })
}
