//! The notes of a run.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::capability::Unavailable;
use weir_model::disturbance::waited;
use weir_model::machine::RunNotes;
use weir_model::tenant::{Arrivals, Tenant};

use super::HostParts;
use super::assignment::{self, Job};
use super::recorder::LeftOut;
use super::task::Timed;
use super::worker::{Done, Ready};
use crate::topology::list;
use weir_loops::kernels;
use weir_loops::kernels::chase::WINDOW_PAGES;

/// A thread with less of its processor's time was disturbed.
const UNDISTURBED: f64 = 0.98;

/// The conditions of the run, and the reasons known at its start to trust it less.
pub(super) fn at_start(
    host: &HostParts,
    tenants: &[Tenant],
    jobs: &[Job],
    ready: &[Ready],
    prefetchers: &Result<Option<String>, Unavailable>,
) -> RunNotes {
    let mut notes = RunNotes::default();
    for (index, tenant) in tenants.iter().enumerate() {
        let of_tenant = |r: &&Ready| r.tenant == index;
        let (Some(stream), Some(job), Some(first)) = (
            tenant.work.stream(),
            jobs.iter().find(|j| j.tenant == index),
            ready.iter().find(of_tenant),
        ) else {
            continue;
        };
        let subject = if tenants.len() > 1 {
            format!("{}: ", tenant.name)
        } else {
            String::new()
        };
        let mut say = |text: String| notes.conditions.push(format!("{subject}{text}"));
        say(describe_kernel(job));
        let mut cpus = tenant.cores.clone();
        cpus.sort_unstable();
        say(format!("pinned to CPU {}", list::format(&cpus)));
        for (array, pages) in first.pages.iter().enumerate() {
            let loaded = if array == 0 { "" } else { "loaded from " };
            say(format!("{loaded}{pages}"));
        }
        if let Some(other) = ready
            .iter()
            .filter(of_tenant)
            .find(|r| r.pages != first.pages)
        {
            say(format!("other threads: {}", other.pages.join("; ")));
        }
        if job.turn.is_none() && first.bytes > stream.working_set {
            say(format!("{} allocated for each thread", first.bytes));
        }
        let verified = ready.iter().filter(of_tenant).all(|r| r.verified);
        if verified {
            let tiers: Vec<String> = job.memory.iter().map(assignment::tiers_of).collect();
            say(format!(
                "every page verified on {}",
                tiers.join(", loaded ones on ")
            ));
        }
        if !stream.op.is_load() && stream.op != Op::Cas {
            say("stored words differ and are not zero".into());
        }
        if let Some(text) = describe_pattern(stream.pattern) {
            say(text);
        }
        if stream.pause.get() > 0.0 {
            say(match stream.arrivals {
                Arrivals::Closed => format!("pausing {} a line", stream.pause),
                Arrivals::Open => format!("a line due every {}", stream.pause),
            });
        }
        for text in describe_timed(first.timed) {
            say(text);
        }
        let mut warn = |text: String| {
            let text = format!("{subject}{text}");
            if !notes.warnings.contains(&text) {
                notes.warnings.push(text);
            }
        };
        if !verified {
            let why = match host.policy.availability() {
                Err(why) => why.reason,
                Ok(()) => "the kernel shows no nodes".to_owned(),
            };
            warn(format!("the placement of the pages is not verified: {why}"));
        }
        let (conditions, warnings) =
            describe_prefetchers(host, tenant, stream.pattern, prefetchers);
        for text in warnings {
            warn(text);
        }
        let said = conditions
            .into_iter()
            .map(|text| format!("{subject}{text}"));
        notes.conditions.extend(said);
    }
    notes
}

/// The state of the prefetchers: conditions and warnings.
fn describe_prefetchers(
    host: &HostParts,
    tenant: &Tenant,
    pattern: Pattern,
    prefetchers: &Result<Option<String>, Unavailable>,
) -> (Vec<String>, Vec<String>) {
    match prefetchers {
        _ if tenant.prefetch => {
            let Ok(switches) = &host.prefetchers else {
                return (vec![], vec![]);
            };
            let quiet = |cpu: &&u32| {
                let running = switches.running(**cpu);
                running.is_ok_and(|running| !running.l1 || !running.l2)
            };
            let quiet: Vec<u32> = tenant.cores.iter().filter(quiet).copied().collect();
            if quiet.is_empty() {
                return (vec![], vec![]);
            }
            let cpus = list::format(&quiet);
            let text = format!("prefetchers of CPU {cpus} are off, as they were found");
            (vec![], vec![text])
        }
        Ok(Some(register)) => (vec![format!("prefetchers off ({register})")], vec![]),
        Ok(None) => (vec![], vec![]),
        Err(why) => match pattern {
            // None of them has an order that a prefetcher could follow.
            Pattern::Chase {
                locality: Locality::Random,
            }
            | Pattern::FlushedLine
            | Pattern::FlushedBurst { .. }
            | Pattern::SharedLine => (
                vec![format!(
                    "prefetchers on ({why}); no order of lines to follow"
                )],
                vec![],
            ),
            Pattern::Chase {
                locality: Locality::TlbFriendly,
            } => (
                vec![format!("prefetchers on ({why})")],
                vec![format!(
                    "the prefetchers stayed on ({why}): some hops find their line already fetched"
                )],
            ),
            _ => (vec![], vec![format!("the prefetchers stayed on: {why}")]),
        },
    }
}

fn describe_kernel(job: &Job) -> String {
    let kernel = job.kernel;
    if let Some((queue, _)) = &job.offload {
        return format!(
            "{} as {} through {}",
            kernel.op, kernel.mnemonic, queue.name
        );
    }
    let Some(rounds) = job.rounds else {
        return format!("{} as {} ({})", kernel.op, kernel.mnemonic, kernel.isa);
    };
    let load = kernels::select(Op::Ld, Some(kernel.isa));
    let load = load.map_or("loads", |load| load.mnemonic);
    format!(
        "{} in {} ({})",
        kernel.op,
        rounds.describe(load, kernel.mnemonic),
        kernel.isa
    )
}

fn describe_timed(timed: Timed) -> Vec<String> {
    let (samples, timer) = match timed {
        Timed::Nothing => return Vec::new(),
        Timed::Hops { hops, timer } => (
            format!("each latency sample is the mean of {hops} hops"),
            timer,
        ),
        Timed::Hop { timer } => (
            "each hop timed alone; samples wait in 2 KiB and are recorded 256 at a time".to_owned(),
            timer,
        ),
        Timed::Single { timer } => (
            "each access timed alone, with its translation fetched before, and with a fence"
                .to_owned(),
            timer,
        ),
        Timed::Burst { lines, timer } => (
            format!(
                "each latency sample is the time of {lines} accesses at once, with a fence, over \
                 their number; their translations were fetched before"
            ),
            timer,
        ),
        Timed::SharedLine { handovers, timer } => (
            format!(
                "each latency sample is the mean of {handovers} hand-overs, timed by one thread"
            ),
            timer,
        ),
    };
    vec![samples, timer.describe(), timer.clock.describe()]
}

fn describe_pattern(pattern: Pattern) -> Option<String> {
    match pattern {
        Pattern::Chase {
            locality: Locality::TlbFriendly,
        } => Some(format!(
            "random order inside windows of {WINDOW_PAGES} pages of 4 KiB, one window after the other"
        )),
        Pattern::Chase {
            locality: Locality::Random,
        } => Some("one random cycle over the working set".to_owned()),
        Pattern::RandomLine | Pattern::RandomBlock { .. } => {
            Some("blocks drawn with replacement".to_owned())
        }
        Pattern::FlushedLine => {
            Some("lines drawn at random, flushed before each access".to_owned())
        }
        Pattern::FlushedBurst { .. } => Some(
            "lines drawn at random, each from a separate part, all flushed before each burst"
                .to_owned(),
        ),
        Pattern::SharedLine => Some(
            "each thread polls the line and passes it on by compare and swap, in a ring".to_owned(),
        ),
        Pattern::Sequential | Pattern::Descriptors { .. } | Pattern::Requests { .. } => None,
    }
}

/// Whether a thread shared its processor with other work, and what was done about it.
pub(super) fn at_end(notes: &mut RunNotes, done: &Done) {
    let LeftOut {
        preempted,
        backwards,
    } = done.left_out;
    if preempted > 0 {
        notes.conditions.push(format!(
            "CPU {}: {preempted} samples left out, during which another thread ran",
            done.cpu
        ));
    }
    if backwards > 0 {
        notes.warnings.push(format!(
            "CPU {}: {backwards} samples left out, during which the clock ran backwards",
            done.cpu
        ));
    }
    let share = (done.on_cpu / done.elapsed.get().max(1.0)).get();
    if share < UNDISTURBED {
        notes.warnings.push(waited(done.cpu, 1.0 - share));
    }
}
