//! Threads on both tiers at once, and what the system makes of a share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::GbPerSec;

use super::crowd::Crowded;

/// This many threads on either tier at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Local threads.
    pub local: u32,
    /// Threads on the slower tier.
    pub far: u32,
    /// What the local threads read alone.
    pub alone_gbps: GbPerSec,
    /// What they read with the others.
    pub local_gbps: GbPerSec,
    /// What the others read.
    pub far_gbps: GbPerSec,
    /// What the others read alone.
    #[serde(default)]
    pub far_alone_gbps: GbPerSec,
    /// The share of a buffer at which both end at once, in percent.
    pub level_pct: f64,
    /// Cores that two threads share, where some do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_cores: Option<u32>,
    /// What the local threads on those cores read with the others, and once all others are done, where the machine shares
    /// the buffers of a core between its threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing_gbps: Option<[GbPerSec; 2]>,
}

/// How threads of a core that two of them share go on, and what a byte costs each of them there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedCore {
    /// What one local thread reads while nothing else runs: the processor's part of its time.
    pub alone_gbps: GbPerSec,
}

impl Pair {
    /// Threads whose far data a network card writes into local memory, while they poll for that: this many local ones
    /// with this many others, on a machine of `cores` cores.
    ///
    /// A thread that polls has its core for the whole time of its transfer, of which each of `far` threads gets its part
    /// of the link. It adds up one piece while the next is under way, so that the longer of the two is its time.
    pub fn over_link(
        (local, far, cores): (u32, u32, u32),
        alone_gbps: GbPerSec,
        core: SharedCore,
        link: GbPerSec,
    ) -> Self {
        let far_gbps = link.min(core.alone_gbps * f64::from(far));
        let shared = (local + far).saturating_sub(cores);
        let mut pair = Self {
            local,
            far,
            alone_gbps,
            local_gbps: alone_gbps,
            far_gbps,
            far_alone_gbps: far_gbps,
            level_pct: 0.0,
            shared_cores: (shared > 0).then_some(shared),
            sharing_gbps: None,
        };
        let [near, other] = pair.byte_times();
        let left = if shared > 0 {
            near - 1.0 / core.alone_gbps.get()
        } else {
            near
        };
        pair.level_pct = 100.0 * (left / other).max(0.0);
        pair
    }

    /// The same where some of the local threads share their cores with others.
    pub fn on_shared_cores(self, cores: u32, seen: &Crowded) -> Self {
        Self {
            shared_cores: Some((self.local + self.far).saturating_sub(cores)),
            sharing_gbps: Some([seen.sharing, seen.last]),
            ..self
        }
    }

    /// Nanoseconds for a byte of a thread's buffer, of local threads and of the others.
    fn byte_times(&self) -> [f64; 2] {
        let each = |gbps: GbPerSec, threads: u32| f64::from(threads) / gbps.get().max(1e-9);
        [
            each(self.local_gbps, self.local),
            each(self.far_gbps, self.far),
        ]
    }

    /// Of the bandwidth of the local threads alone, that of the system where buffers on the slower tier have this share.
    pub fn system(&self, share: f64) -> f64 {
        self.system_sharing(share, None)
    }

    /// The same where a core that two threads share has to work for both of them: for as long as its local thread
    /// would take with memory to itself, and for as long as the other has data under way.
    pub fn system_sharing(&self, share: f64, core: Option<SharedCore>) -> f64 {
        let [_, other] = self.byte_times();
        let mut time = self.time(share);
        if let (Some(core), Some(_)) = (core, self.shared_cores) {
            time = time.max(1.0 / core.alone_gbps.get().max(1e-9) + share * other);
        }
        let [local, far] = [f64::from(self.local), f64::from(self.far)];
        let alone = local / self.alone_gbps.get().max(1e-9);
        (local + share * far) / local * alone / time
    }

    /// Nanoseconds until the last thread is done, for a byte of a local thread's buffer. Threads go on faster once those of
    /// the other tier are done.
    fn time(&self, share: f64) -> f64 {
        let each = |gbps: GbPerSec, threads: u32| gbps.get().max(1e-9) / f64::from(threads.max(1));
        let alone = each(self.alone_gbps, self.local);
        let far = each(self.far_gbps, self.far);
        let far_alone = each(self.far_alone_gbps, self.far).max(far);
        let sharing = self.shared_cores.filter(|_| self.sharing_gbps.is_some());
        let sharing = sharing.unwrap_or(0).min(self.local);
        // Local threads on cores of their own, those on shared cores, and those once all others are done.
        let (own, shared, last) = match self.sharing_gbps {
            Some([gbps, last]) if sharing > 0 => {
                let shared = each(gbps, sharing);
                let own = match self.local - sharing {
                    0 => shared,
                    threads => each(self.local_gbps - gbps, threads),
                };
                (own, shared, each(last, sharing))
            }
            _ => {
                let own = each(self.local_gbps, self.local);
                (own, own, own)
            }
        };
        let (near, done) = (1.0 / shared.min(own), share / far);
        if near <= done {
            return near + (share - far * near) / far_alone;
        }
        // What is left to those on cores of their own, and to those on shared cores.
        let [own, shared] = [own, shared].map(|rate| (1.0 - rate * done).max(0.0));
        let late = (shared - own).max(0.0);
        done + own.max(shared - late) / alone + late / last.max(alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn time_is_lost_only_above_the_share_at_which_both_end_at_once(
            local in 1_u32..100, far in 1_u32..100, near in 1.0..500.0f64, slow in 0.1..200.0f64, part in 0.01..3.0f64
        ) {
            let pair = Pair {
                local,
                far,
                alone_gbps: GbPerSec(near),
                local_gbps: GbPerSec(near),
                far_gbps: GbPerSec(slow),
                far_alone_gbps: GbPerSec(slow),
                level_pct: 100.0 * slow / f64::from(far) / (near / f64::from(local)),
                shared_cores: None,
                sharing_gbps: None,
            };
            let level = pair.level_pct / 100.0;
            let at = pair.system(level * part);
            // Below it all of the far data come for nothing; above, the system waits for them.
            let gained = 1.0 + level * part * f64::from(far) / f64::from(local);
            if part <= 1.0 {
                prop_assert!((at - gained).abs() < 1e-9 * gained);
            } else {
                prop_assert!(at < gained && at <= pair.system(level) + 1e-9);
            }
            // Never more than both tiers give.
            prop_assert!(at <= (1.0 + slow / near) * (1.0 + 1e-9));
        }

        #[test]
        fn threads_on_shared_cores_end_last_and_later_the_more_the_others_have(
            (local, shared) in (2_u32..64).prop_flat_map(|local| (Just(local), 1..=local)), far in 1_u32..64,
            one in 1.0..10.0f64, slow in 0.1..10.0f64, [kept, left] in prop::array::uniform2(0.1..1.0f64),
            share in 0.0..2.0f64, more in 1.0..1.3f64,
        ) {
            let gbps = |rate: f64, threads: u32| GbPerSec(rate * f64::from(threads));
            let alone = Pair {
                local,
                far: far.max(shared),
                alone_gbps: gbps(one, local),
                local_gbps: gbps(one, local),
                far_gbps: gbps(slow * left, far.max(shared)),
                far_alone_gbps: gbps(slow, far.max(shared)),
                level_pct: 0.0,
                shared_cores: None,
                sharing_gbps: None,
            };
            let crowded = |kept: f64| Pair {
                local_gbps: gbps(one, local - shared) + gbps(one * kept, shared),
                shared_cores: Some(shared),
                sharing_gbps: Some([gbps(one * kept, shared), gbps(one, shared)]),
                ..alone.clone()
            };
            let near = |one: f64, other: f64| (one - other).abs() < 1e-9 * one.max(other);
            // Cores that take nothing from their first threads cost nothing.
            prop_assert!(near(crowded(1.0).time(share), alone.time(share)));
            let time = |share: f64| crowded(kept).time(share);
            prop_assert!(time(share) >= alone.time(share) * (1.0 - 1e-9));
            prop_assert!(time(1.1 * share) >= time(share) * (1.0 - 1e-9));
            // Those on cores of their own are faster meanwhile, but all together get no more than memory gives.
            let gained = Pair {
                local_gbps: gbps(one * more, local - shared) + gbps(one * kept, shared),
                ..crowded(kept)
            };
            let most = f64::max(gained.local_gbps.get(), alone.alone_gbps.get());
            prop_assert!(gained.time(share) >= f64::from(local) / most * (1.0 - 1e-9));
            // No longer than if the others never ended, or began once the local threads had.
            let most = (1.0 / (one * kept)).max(share / (slow * left)) + share / slow;
            prop_assert!(time(share) <= most * (1.0 + 1e-9));
        }

        #[test]
        fn polling_costs_nothing_while_cores_are_free_and_the_link_is_fast_enough(
            cores in 2_u32..64, local in 1_u32..64, far in 1_u32..64, near in 10.0..300.0f64,
            one in 5.0..20.0f64, link in 1.0..50.0f64, share in 0.01..1.0f64,
        ) {
            let (local, far) = (local.min(cores), far.min(cores));
            // Threads are no faster together than alone.
            let near = near.min(one * f64::from(local));
            let core = SharedCore { alone_gbps: GbPerSec(one) };
            let pair = Pair::over_link((local, far, cores), GbPerSec(near), core, GbPerSec(link));
            let (sharing, free) = (pair.system_sharing(share, Some(core)), pair.system(share));
            prop_assert!(sharing <= free + 1e-9);
            if local + far <= cores {
                prop_assert_eq!(sharing, free);
            }
            // Nothing is lost up to the level, and something beyond twice of it.
            let at = |share| pair.system_sharing(share, Some(core));
            let level = pair.level_pct / 100.0;
            let gained = |share: f64| 1.0 + share * f64::from(far) / f64::from(local);
            prop_assert!((at(level) - gained(level)).abs() < 1e-6);
            prop_assert!(at(2.0 * level + 0.01) < gained(2.0 * level + 0.01));
            // Polling takes at least no core that it does not share.
            let more = Pair::over_link((local, far, cores + far), GbPerSec(near), core, GbPerSec(link));
            prop_assert!(more.system_sharing(share, Some(core)) >= sharing - 1e-9);
        }
    }
}
