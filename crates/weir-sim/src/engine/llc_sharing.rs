//! The last-level cache of a described program that is not alone: what others access there leaves less for it.
//!
//! A formula gives what a program finds in the cache (`core/ooo/che_approximation`): the lines that were accessed within the
//! cache's characteristic time. Others make this time shorter, the more lines a second they access. So every tenant's rate is
//! measured while it runs, and the time is computed again from the rates of all.

use weir_model::access::{Op, Pattern};

use super::Engine;
use crate::clock::Ps;
use crate::core::{Flow, Law, Style, Thread};

/// The first time between two measurements, and the last; each is twice as long as the one before. Rates change most
/// while the first queues fill.
const FIRST: Ps = 5_000_000;
const LAST: Ps = 80_000_000;

/// When rates are measured, and what each thread had done when they were.
pub struct LlcSharing {
    due: Ps,
    period: Ps,
    since: Ps,
    done: Vec<f64>,
}

impl Default for LlcSharing {
    fn default() -> Self {
        Self {
            due: Ps::MAX,
            period: FIRST,
            since: 0,
            done: Vec::new(),
        }
    }
}

/// What a thread has done so far: instructions of a program, lines of a stream that enter caches.
fn done(thread: &Thread) -> f64 {
    match &thread.ooo {
        Some(core) => core.position(),
        None => thread.progress.accesses as f64 * cached_share(thread),
    }
}

/// The part of a stream's lines that enter caches.
fn cached_share(thread: &Thread) -> f64 {
    if matches!(
        thread.style,
        Style::Requests | Style::Offload | Style::Shared
    ) {
        return 0.0;
    }
    match (&thread.program, thread.op) {
        (Some(program), op) if op.is_posted() => program.loaded_share(),
        (None, op) if op.is_posted() => 0.0,
        (_, Op::StClwb | Op::Ld | Op::St | Op::Cas) => 1.0,
        _ => 0.0,
    }
}

/// In which order a stream comes back to its lines.
fn law(pattern: &Pattern) -> Law {
    match pattern {
        Pattern::RandomLine | Pattern::RandomBlock { .. } => Law::Uniform,
        _ => Law::Cyclic,
    }
}

impl Engine {
    /// Measures rates from now on, if a program shares a cache with others.
    pub(super) fn begin_sharing(&mut self) {
        let first = self.threads.first().map(|t| t.tenant);
        let programs = self.threads.iter().any(|t| t.ooo.is_some());
        let others = self.threads.iter().any(|t| Some(t.tenant) != first);
        if programs && others {
            self.sharing.due = self.now + FIRST;
            self.sharing.since = self.now;
            self.sharing.period = FIRST;
            self.sharing.done = self.threads.iter().map(done).collect();
        }
    }

    /// Advances time to `until`.
    pub fn run(&mut self, until: Ps) {
        while self.sharing.due <= until {
            self.run_events(self.sharing.due);
            self.share_llc();
        }
        self.run_events(until);
    }

    /// The socket or host and the core complex whose last-level cache a thread uses.
    fn cache_of(&self, thread: &Thread) -> (usize, u16) {
        let complex = self.params.uncore.complex.is_some();
        let slice = if complex {
            self.params.first_slice(thread.core)
        } else {
            0
        };
        (self.params.part_of(thread.core), slice)
    }

    /// Computes from the rates since the last time what each program finds in its last-level cache.
    fn share_llc(&mut self) {
        let time = (self.now - self.sharing.since) as f64;
        let now: Vec<f64> = self.threads.iter().map(done).collect();
        let before = std::mem::replace(&mut self.sharing.done, now);
        let pace: Vec<f64> = (self.sharing.done.iter().zip(&before))
            .map(|(now, before)| (now - before) / time)
            .collect();
        self.sharing.since = self.now;
        self.sharing.period = LAST.min(2 * self.sharing.period);
        self.sharing.due = self.now + self.sharing.period;
        let l2 = self.params.core.private.l2.0 as f64;
        let mut of_programs: Vec<(u16, f64, Vec<Flow>, f64)> = Vec::new();
        for (t, thread) in self.threads.iter().enumerate() {
            if thread.ooo.is_none() || of_programs.iter().any(|p| p.0 == thread.tenant) {
                continue;
            }
            let cache = self.cache_of(thread);
            let (mut others, mut in_l2) = (Vec::new(), 0.0);
            let mut seen: Vec<u16> = Vec::new();
            for (o, other) in self.threads.iter().enumerate() {
                if other.tenant == thread.tenant || self.cache_of(other) != cache {
                    continue;
                }
                let common = self.uncore.common_ways(o, t);
                if common <= 0.0 || pace[o] <= 0.0 {
                    continue;
                }
                in_l2 += l2 * common;
                match &other.ooo {
                    // The flows of a program are those of all its threads.
                    Some(core) if !seen.contains(&other.tenant) => {
                        seen.push(other.tenant);
                        let mean = self.mean_pace(&pace, other.tenant);
                        others.extend(core.script().flows(mean).into_iter().map(|flow| Flow {
                            rate: flow.rate * common,
                            lines: flow.lines * common,
                            ..flow
                        }));
                    }
                    Some(_) => {}
                    None => others.push(Flow {
                        lines: other.lines() as f64 * common,
                        rate: pace[o] * common,
                        law: law(&other.pattern),
                    }),
                }
            }
            let own = self.mean_pace(&pace, thread.tenant);
            if own > 0.0 {
                of_programs.push((thread.tenant, own, others, in_l2));
            }
        }
        for thread in &mut self.threads {
            let of = of_programs.iter().find(|of| of.0 == thread.tenant);
            if let (Some(core), Some((_, pace, others, in_l2))) = (&mut thread.ooo, of) {
                core.script_mut().share(*pace, others, *in_l2);
            }
        }
    }

    /// The mean of a tenant's threads.
    fn mean_pace(&self, pace: &[f64], tenant: u16) -> f64 {
        let own = || (self.threads.iter().zip(pace)).filter(|(t, _)| t.tenant == tenant);
        own().map(|(_, pace)| pace).sum::<f64>() / own().count().max(1) as f64
    }
}
