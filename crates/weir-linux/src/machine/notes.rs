//! What a run has to say beside its figures.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::capability::Feature;
use weir_model::machine::RunNotes;
use weir_model::tenant::Tenant;

use super::Host;
use super::assignment::{self, Job};
use super::worker::{Done, Ready, Timing};
use crate::kernels::chase::WINDOW_PAGES;
use crate::topology::list;

/// A thread that had its processor for less of the time was disturbed.
const UNDISTURBED: f64 = 0.98;

/// How the run is made, and what speaks against it before it has begun.
pub(super) fn at_start(host: &Host, tenants: &[Tenant], jobs: &[Job], ready: &[Ready]) -> RunNotes {
    let mut notes = RunNotes::default();
    for (index, tenant) in tenants.iter().enumerate() {
        let of_tenant = |r: &&Ready| r.tenant == index;
        let (Some(job), Some(first)) = (
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
        say(format!(
            "{} as {} ({})",
            job.kernel.op, job.kernel.mnemonic, job.kernel.isa
        ));
        let mut cpus = tenant.cores.clone();
        cpus.sort_unstable();
        say(format!("pinned to CPU {}", list::format(&cpus)));
        say(first.pages.clone());
        if let Some(other) = ready
            .iter()
            .filter(of_tenant)
            .find(|r| r.pages != first.pages)
        {
            say(format!("other threads: {}", other.pages));
        }
        if first.bytes > tenant.working_set {
            say(format!("{} allocated for each thread", first.bytes));
        }
        let verified = ready.iter().filter(of_tenant).all(|r| r.verified);
        if verified {
            say(format!(
                "every page verified on {}",
                assignment::tiers_of(job)
            ));
        }
        if tenant.op != Op::Ld && tenant.op != Op::Cas {
            say("stored words differ and none is zero".into());
        }
        if let Some(text) = describe_pattern(tenant.pattern) {
            say(text);
        }
        match first.timing {
            Timing::None => {}
            Timing::Hops { hops, clock } => {
                say(format!("each latency sample is the mean of {hops} hops"));
                say(clock.describe());
            }
            Timing::Single { timer, clock } => {
                say(format!(
                    "each access timed alone, less {timer:.1} for timer and fence"
                ));
                say(clock.describe());
            }
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
            warn(format!("where the pages lie is not verified: {why}"));
        }
        if !tenant.prefetch {
            let why = host
                .capabilities
                .iter()
                .find(|c| c.feature == Feature::PrefetchControl);
            let why = why.map_or("", |c| c.detail.as_str());
            match tenant.pattern {
                // Neither has an order that a prefetcher could follow.
                Pattern::Chase { .. } | Pattern::FlushedLine => {
                    notes.conditions.push(format!(
                        "{subject}prefetchers on ({why}); the order of lines is random"
                    ));
                }
                _ => warn(format!("the prefetchers could not be switched off: {why}")),
            }
        }
    }
    notes
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
        Pattern::Sequential
        | Pattern::FlushedLine
        | Pattern::SharedLine
        | Pattern::Descriptors { .. } => None,
    }
}

/// Whether a thread shared its processor with something else, and what was done about it.
pub(super) fn at_end(notes: &mut RunNotes, done: &Done) {
    if done.left_out > 0 {
        notes.conditions.push(format!(
            "CPU {}: {} samples left out, during which another thread ran",
            done.cpu, done.left_out
        ));
    }
    let share = (done.on_cpu / done.elapsed.get().max(1.0)).get();
    if share < UNDISTURBED {
        notes.warnings.push(format!(
            "the thread on CPU {} had its processor {:.0} % of the time: something else ran there",
            done.cpu,
            share * 100.0
        ));
    }
}
