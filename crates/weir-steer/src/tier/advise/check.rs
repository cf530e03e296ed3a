//! How wrong a gain is because the workload is rebuilt: a rebuilt workload, which is known, is profiled in the same way as
//! the given profile was made, rebuilt from that, and replayed again. What the gains of the two differ by is one error of
//! the kind that the first rebuilding has (the parametric bootstrap; Efron and Tibshirani, 1993).

use weir_lab::LabError;
use weir_pages::PagedWorkload;

use super::{Advise, Runs, Unknown, rebuild};
use crate::tier::Replay;
use crate::tier::profile::{Looked, Profile, SamplerName, Times};

/// Student's t of 9 in 10 cases, by the number of errors whose mean is known to be 0: errors of one, two and three
/// workloads. More are not profiled.
const T: [f64; 3] = [6.31, 2.92, 2.35];
/// The least time between two looks of the model, in seconds.
const STEP_S: f64 = 0.25;
/// The most pages that are looked at.
const PAGES: u64 = 1 << 18;

/// Accesses in a second of each workload under each policy, and which policy is first touch.
#[derive(Clone, Copy)]
pub(super) struct Gains<'a> {
    pub(super) first: usize,
    pub(super) known: &'a [Vec<f64>],
}

impl Gains<'_> {
    fn of(&self, speeds: &[f64], policy: usize) -> f64 {
        (speeds[policy] / speeds[self.first].max(1e-12) - 1.0) * 100.0
    }
}

/// How the profile would be made of another workload.
fn look(
    profile: &Profile,
    workload: &PagedWorkload,
    curve: &weir_pages::TierCurve,
    seed: u64,
) -> Looked {
    let steps = |seconds: f64| (seconds / STEP_S).round().max(1.0) * STEP_S;
    let interval_s = steps(profile.interval_s);
    // Looks that are many in an interval find as many touches as sampled accesses, by chance.
    let (sampler, every) = match profile.most_per_s {
        Some(most) if most <= 1.0 / STEP_S => {
            (SamplerName::Bits, steps(1.0 / most).min(interval_s))
        }
        _ => (SamplerName::Events, profile.each),
    };
    Looked {
        workload: workload.clone(),
        sampler,
        every,
        pages: profile.granules.clamp(1, PAGES),
        times: Times {
            intervals: (profile.seconds / interval_s).round().max(2.0) as usize,
            interval_s,
            hot_s: profile.hot_s.max(interval_s),
            warm_s: profile.warm_s.max(interval_s),
        },
        curve: curve.clone(),
        seed,
        version: weir_pages::VERSION,
    }
}

impl Advise {
    /// By how many points the gain of each policy may be wrong in 9 of 10 cases.
    pub(super) fn spread(
        &self,
        profile: &Profile,
        unknown: &Unknown,
        workloads: &[PagedWorkload],
        gains: Gains<'_>,
        runs: Runs<'_>,
        replay: &dyn Fn(usize, PagedWorkload, usize) -> Replay,
    ) -> Result<Vec<f64>, LabError> {
        let policies = gains.known.first().map_or(0, Vec::len);
        let checked = &workloads[..workloads.len().min(T.len())];
        let looks: Vec<Looked> = (checked.iter().enumerate())
            .map(|(n, workload)| {
                let ask = replay(n, workload.clone(), gains.first);
                look(profile, workload, &ask.curves[0], ask.seed)
            })
            .collect();
        let mut asks = Vec::new();
        for (n, again) in (runs.look)(&looks)?.iter().enumerate() {
            let workload = rebuild(again, unknown, &looks[n].curve, n as u32);
            asks.extend((0..policies).map(|policy| replay(n, workload.clone(), policy)));
        }
        let got: Vec<f64> = (runs.replay)(&asks)?
            .iter()
            .map(|of| of.maccesses_per_s)
            .collect();
        let errors: Vec<&[f64]> = got.chunks(policies.max(1)).collect();
        Ok((0..policies)
            .map(|policy| {
                let pairs = errors.iter().zip(gains.known);
                let squares = pairs.map(|(again, known)| {
                    (gains.of(again, policy) - gains.of(known, policy)).powi(2)
                });
                let mean = squares.sum::<f64>() / errors.len().max(1) as f64;
                T.get(errors.len().wrapping_sub(1))
                    .map_or(0.0, |t| t * mean.sqrt())
            })
            .collect())
    }
}
