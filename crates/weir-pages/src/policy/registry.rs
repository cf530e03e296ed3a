//! Policies by name.

use super::{
    Alto, AutoTiering, BestShot, Caption, Colloid, FirstTouch, Interleave, NeoMem, Nomad,
    NumaBalancing, Payback, Policy, Tiering, Tmo, Tpp,
};
use crate::PagesError;

/// Names of policies, and what each is.
pub const NAMES: &[(&str, &str)] = &[
    (
        "first-touch",
        "plain Linux: pages stay where they are allocated",
    ),
    ("numa-balancing", "Linux' NUMA balancing"),
    (
        "tiering",
        "NUMA-balancing tiering of mainline Linux, with demotion",
    ),
    (
        "autotiering",
        "AutoTiering: promotion into a reserve of fixed size",
    ),
    ("tpp", "TPP: Transparent Page Placement"),
    ("tpp-coupled", "TPP, allocation waits for reclaim"),
    ("tpp-unfiltered", "TPP, inactive pages are promoted as well"),
    (
        "tpp-all-sampled",
        "TPP, pages of the fast tier are sampled as well",
    ),
    (
        "tpp-cache-to-slow",
        "TPP, file pages are allocated on the slow tier",
    ),
    (
        "alto",
        "Alto on TPP: promotion as fast as misses hurt; on another policy as `alto:NAME`",
    ),
    (
        "colloid",
        "Colloid: TPP's moves balance the latencies of the tiers",
    ),
    (
        "nomad",
        "Nomad: TPP's promotion without a wait of the program's threads",
    ),
    (
        "tmo",
        "TMO with TPP: reclaim ahead of need; with another policy as `tmo:NAME`",
    ),
    ("neomem", "NeoMem: counters in the device report hot pages"),
    (
        "caption",
        "Caption: the share of new pages on the slow tier climbs towards throughput",
    ),
    (
        "best-shot",
        "best-shot interleaving: one share of pages on the slow tier, from one look",
    ),
    (
        "payback",
        "Weir's own: a page moves if the stall model says that the move pays back",
    ),
    ("interleave", "a page on each tier in turn"),
];

/// A policy by its name. `interleave` may have weights: `interleave:3:1` for three pages on the fast tier to one; `alto`
/// and `tmo` the name of the policy on which they are: `alto:tiering`.
///
/// # Errors
/// There is none of this name, its weights are not two numbers from 1 to 255, or a policy is on itself.
pub fn by_name(name: &str) -> Result<Box<dyn Policy>, PagesError> {
    let tpp = Tpp::default();
    if let Some(twice) = (["alto", "tmo"].into_iter())
        .find(|of| name.split(':').filter(|part| part == of).count() > 1)
    {
        return Err(PagesError::Machine {
            what: "policy",
            why: format!("{name} is {twice} on itself; name another policy behind `{twice}:`"),
        });
    }
    if let Some(weights) = name.strip_prefix("interleave:") {
        let mut parts = weights
            .split(':')
            .map(|w| w.parse::<u8>().ok().filter(|w| *w > 0));
        if let (Some(Some(fast)), Some(Some(slow)), None) =
            (parts.next(), parts.next(), parts.next())
        {
            return Ok(Box::new(Interleave {
                weights: [fast, slow],
            }));
        }
        return Err(PagesError::Machine {
            what: "weights of interleave",
            why: format!("{weights} is not FAST:SLOW with numbers from 1 to 255"),
        });
    }
    if let Some(inner) = name.strip_prefix("alto:") {
        return Ok(Box::new(Alto::on(by_name(inner)?)));
    }
    if let Some(inner) = name.strip_prefix("tmo:") {
        return Ok(Box::new(Tmo::beside(by_name(inner)?)));
    }
    Ok(match name {
        "first-touch" => Box::new(FirstTouch),
        "numa-balancing" => Box::new(NumaBalancing),
        "tiering" => Box::new(Tiering::default()),
        "autotiering" => Box::new(AutoTiering::default()),
        "tpp" => Box::new(tpp),
        "tpp-coupled" => Box::new(Tpp {
            decoupled: false,
            ..tpp
        }),
        "tpp-unfiltered" => Box::new(Tpp {
            active_filter: false,
            ..tpp
        }),
        "tpp-all-sampled" => Box::new(Tpp {
            slow_only: false,
            ..tpp
        }),
        "tpp-cache-to-slow" => Box::new(Tpp {
            cache_to_slow: true,
            ..tpp
        }),
        "alto" => Box::new(Alto::on(Box::new(tpp))),
        "colloid" => Box::new(Colloid::default()),
        "nomad" => Box::new(Nomad::default()),
        "tmo" => Box::new(Tmo::beside(Box::new(tpp))),
        "neomem" => Box::new(NeoMem::default()),
        "caption" => Box::new(Caption::default()),
        "best-shot" => Box::new(BestShot::default()),
        "payback" => Box::new(Payback::default()),
        "interleave" => Box::new(Interleave { weights: [1, 1] }),
        _ => {
            let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            return Err(PagesError::Policy {
                name: name.into(),
                known: known.join(", "),
            });
        }
    })
}
