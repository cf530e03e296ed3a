//! Whether a workload waits for latency or for bandwidth (SupMario §5.2): requests that take far longer
//! than a lone one queue, and then the memory's bandwidth is what they wait for.

use weir_model::insight::Bound;
use weir_model::units::Cycles;

use crate::Run;

/// From this multiple of the unloaded latency on, requests queue. The paper profiles a threshold with
/// pointer chasing and prints no number; this one is ours.
pub const QUEUED: f64 = 1.3;

/// A bound, and what speaks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Classification {
    /// Which; `None` where it cannot be determined.
    pub bound: Option<Bound>,
    /// What was seen or is missing, in words.
    pub evidence: String,
}

/// Compares the mean offcore latency with that of a lone chase on the same memory, both in cycles of the
/// core.
///
/// Reads that hit the last-level cache are among those counted, so that a workload whose reads mostly hit
/// is called latency-bound even where its few misses queue.
pub fn classify(run: &Run<'_>, unloaded: Option<Cycles>) -> Classification {
    let tell = |bound, evidence| Classification { bound, evidence };
    let latency = match run.offcore_latency() {
        Err(why) => {
            return tell(
                None,
                format!("offcore latency could not be counted: {}", why.reason),
            );
        }
        Ok(None) => {
            let evidence = "no read left the core".to_owned();
            return tell(Some(Bound::Latency), evidence);
        }
        Ok(Some(latency)) => latency,
    };
    let Some(unloaded) = unloaded.filter(|u| u.get() > 0.0) else {
        return tell(
            None,
            format!("a read takes {latency:.0}, but what a lone one takes is not known"),
        );
    };
    let times = latency / unloaded;
    let bound = if times > QUEUED {
        Bound::Bandwidth
    } else {
        Bound::Latency
    };
    tell(
        Some(bound),
        format!(
            "a read takes {latency:.0}, {times:.2} x the {unloaded:.0} of a lone chase; above {QUEUED} x \
             reads queue"
        ),
    )
}
