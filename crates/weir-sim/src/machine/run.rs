//! Tenants that run: windows of the engine, and what was counted in them.

use weir_model::access::Pattern;
use weir_model::counters::{Counter, CounterSet};
use weir_model::latency::LatencyHistogram;
use weir_model::machine::{MachineError, Observation, TenantProgress};
use weir_model::page_move::MoveRequest;
use weir_model::region::RegionUse;
use weir_model::stop;
use weir_model::tenant::{Stream, Tenant, Work};
use weir_model::units::{Bytes, LINE_BYTES, Nanos};

use super::model::Model;
use crate::clock::{nanos, ps};
use crate::core::Use;
use crate::engine::{Chance, Engine};
use crate::layout;
use crate::params::Params;
use crate::regulate::{DutySlice, Regulation};
use crate::sampling::{History, PARTS, Plan, Sampling, Series, Stretches};

/// Tenants on an engine, and what was counted until the last window.
pub(super) struct Run {
    pub(super) engine: Engine,
    pub(super) tenants: Vec<Tenant>,
    /// Each tenant's.
    pub(super) streams: Vec<Stream>,
    pub(super) regulations: Vec<Regulation>,
    pub(super) accesses: Vec<u64>,
    pub(super) counters: CounterSet,
    /// Data of each tenant.
    pub(super) of_tenants: Vec<CounterSet>,
    /// Whether the running threads or their limits changed since the last window.
    pub(super) disturbed: bool,
    /// How many parts its windows have, and where they are.
    pub(super) plan: Plan,
    pub(super) chance: Chance,
    pub(super) history: History,
    /// What the programs had done in their regions at the end of the last window, and their instructions.
    pub(super) used: Vec<(Vec<Use>, f64)>,
}

impl Run {
    /// What the programs did in their regions since the last window. Of a window of which only parts were counted, the
    /// parts before those are in it too, so that it is brought to the instructions that were counted.
    pub(super) fn add_uses(&mut self, seen: &mut Observation) {
        let now = self.engine.uses(self.tenants.len());
        self.used.resize_with(now.len(), Default::default);
        let since = std::mem::replace(&mut self.used, now);
        let each = seen.tenants.iter_mut().zip(&self.tenants);
        for ((progress, tenant), (now, before)) in each.zip(self.used.iter().zip(&since)) {
            let Work::Program(work) = &tenant.work else {
                continue;
            };
            let counted = progress.counters.get(Counter::Instructions).unwrap_or(0) as f64;
            let ran = now.1 - before.1;
            let scale = if ran > 0.0 { counted / ran } else { 0.0 };
            let of = |(n, (region, _)): (usize, (&str, Bytes))| {
                let at = |uses: &[Use]| uses.get(n).copied().unwrap_or_default();
                let (now, before) = (at(&now.0), at(&before.0));
                let own = RegionUse {
                    region: region.to_owned(),
                    read: now.read - before.read,
                    written: now.written - before.written,
                    waited: nanos(now.waited - before.waited),
                    waits: now.waits - before.waits,
                };
                own.times(scale)
            };
            progress.uses = work.memory().into_iter().enumerate().map(of).collect();
        }
    }

    /// The position of the tenant of this name.
    pub(super) fn tenant(&self, name: &str) -> Result<usize, MachineError> {
        let position = self.tenants.iter().position(|t| t.name == name);
        position.ok_or_else(|| MachineError::Request(format!("no tenant is called `{name}`")))
    }

    /// Has pages of a tenant moved while time goes on.
    pub(super) fn move_pages(
        &mut self,
        tenant: &str,
        request: MoveRequest<'_>,
        model: &Model,
    ) -> Result<(), MachineError> {
        let i = self.tenant(tenant)?;
        (self.engine.pages_mut()).request(i, request, &model.topology)?;
        self.engine.start_moving();
        Ok(())
    }

    pub(super) fn regulation(&mut self, tenant: &str) -> Result<&mut Regulation, MachineError> {
        let i = self.tenant(tenant)?;
        Ok(&mut self.regulations[i])
    }

    /// The time between two requests of every core: a lower clock makes instructions slower, and a bandwidth
    /// allocation limits the rate of requests.
    pub(super) fn set_pace(&mut self, params: &Params) {
        for thread in self.engine.threads_mut() {
            let i = usize::from(thread.tenant);
            let (prefetch, held) = (self.tenants[i].prefetch, &self.regulations[i]);
            let limits = layout::limits_of(thread, params, &self.streams[i], prefetch, prefetch);
            let slower = held
                .clock
                .map_or(1.0, |c| 1.0 / (c.get() * params.core.cycle));
            thread.limits.gap = (limits.gap as f64 * slower) as u64;
            thread.allocated = params.core.allocated(held.bandwidth);
            if let Some(core) = &mut thread.ooo {
                let constants = params.core_of(thread.is_halved);
                core.set_clock(&layout::ooo_params(&constants), 1.0 / slower);
            }
        }
    }

    /// Lets the threads of a slice run. Returns whether other threads ran before.
    pub(super) fn let_run(&mut self, slice: &DutySlice) -> bool {
        let running = &slice.running;
        (self.engine).let_run(|tenant, number| number < running[usize::from(tenant)])
    }

    /// Simulates parts of a stretch in which the same threads run. Returns the counts of the whole, and the time that was
    /// counted.
    pub(super) fn sample(
        &mut self,
        whole: Nanos,
        sampling: &Sampling,
        seen: &mut Stretches,
    ) -> (Observation, Nanos) {
        let changes = self.engine.changes();
        seen.0.push(Series::new(changes));
        match changes {
            true => self.sample_changing(whole, sampling, seen),
            false => self.sample_steady(whole, sampling, seen),
        }
    }

    /// The same where nothing changes over time but what is queued: the parts follow one another.
    pub(super) fn sample_steady(
        &mut self,
        whole: Nanos,
        sampling: &Sampling,
        seen: &mut Stretches,
    ) -> (Observation, Nanos) {
        let length = sampling.part(self.plan.error);
        let mut sum = self.go_on(length);
        let mut last = sum.clone();
        loop {
            if let Some(series) = seen.0.last_mut() {
                series.push(length, &last);
                series.level(whole);
                let enough = series.len() >= PARTS && series.len().is_multiple_of(PARTS / 2);
                let all = sum.window >= whole || !self.plan.goes_on(seen);
                if stop::requested() || enough && all {
                    break;
                }
            }
            last = self.go_on(length);
            sum.extend(last.clone());
        }
        let counted = sum.window;
        (sum.scaled_to(whole), counted)
    }

    /// The same where programs have phases, or pages move.
    pub(super) fn sample_changing(
        &mut self,
        whole: Nanos,
        sampling: &Sampling,
        seen: &mut Stretches,
    ) -> (Observation, Nanos) {
        let length = sampling.part(self.plan.error);
        let tenants = vec![TenantProgress::default(); self.tenants.len()];
        let mut sum = Observation::of(Nanos(0.0), tenants, CounterSet::default());
        let (mut counted, mut changed) = (Nanos(0.0), 0.0);
        let parts = match self.plan.error {
            Some(_) => {
                let most = (whole.get() / length.get()).ceil() as usize;
                self.plan.parts().min(most).max(1)
            }
            None => self.plan.parts(),
        };
        let stratum = whole * (1.0 / parts as f64);
        for _ in 0..parts {
            if stop::requested() {
                break;
            }
            let spare = (stratum - length).max(Nanos(0.0));
            let before = spare * self.chance.unit();
            changed += self.engine.skip(ps(before));
            let mut after = spare - before;
            if changed > 0.0 {
                let settling = sampling.settling(changed);
                self.go_on(settling);
                after = (after - settling).max(Nanos(0.0));
            }
            let copied = self.engine.pages_mut().copied();
            self.engine.begin_part();
            let part = self.go_on(length);
            self.engine.end_part();
            let copied = self.engine.pages_mut().copied() - copied;
            let factor = stratum.get() / part.window.get();
            let skipped = ps((stratum - part.window).max(Nanos(0.0)));
            (self.engine).skip_moves((copied as f64 * (factor - 1.0)) as u64, skipped);
            changed = self.engine.skip(ps(after));
            if let Some(series) = seen.0.last_mut() {
                series.push(stratum, &part);
            }
            counted = counted + part.window;
            sum.extend(part.scaled_to(stratum));
        }
        self.plan.end(seen);
        (sum, counted)
    }

    /// Lets time pass; returns the counts of that time.
    pub(super) fn go_on(&mut self, time: Nanos) -> Observation {
        let from = self.engine.now();
        self.engine.run(from + ps(time));
        let (counters, of_tenants) = self.engine.counters(self.tenants.len());
        let counted = since(&counters, &self.counters);
        self.counters = counters;

        let mut tenants = vec![TenantProgress::default(); self.tenants.len()];
        for thread in self.engine.threads_mut() {
            let tenant = &mut tenants[thread.tenant as usize];
            tenant.accesses += thread.progress.accesses;
            if let Some(latency) = &mut thread.progress.latency {
                latency.put_into(tenant.latency.get_or_insert_with(LatencyHistogram::new));
            }
        }
        let pairs = of_tenants.iter().zip(&self.of_tenants);
        for (tenant, (later, earlier)) in tenants.iter_mut().zip(pairs) {
            tenant.counters = since(later, earlier);
        }
        self.of_tenants = of_tenants;
        let patterns = self.streams.iter().map(|stream| stream.pattern);
        for ((tenant, before), pattern) in tenants.iter_mut().zip(&mut self.accesses).zip(patterns)
        {
            let total = tenant.accesses;
            tenant.accesses -= *before;
            tenant.bytes = Bytes(tenant.accesses * bytes_of_access(pattern));
            *before = total;
        }
        Observation::of(nanos(self.engine.now() - from), tenants, counted)
    }
}

/// Bytes that an access of a tenant touches: those of a request, or a line.
fn bytes_of_access(pattern: Pattern) -> u64 {
    match pattern {
        Pattern::Requests { bytes, .. } => bytes.lines() * LINE_BYTES,
        _ => LINE_BYTES,
    }
}

/// Counters of a window: the later ones minus the earlier ones, but levels as they are.
fn since(later: &CounterSet, earlier: &CounterSet) -> CounterSet {
    let mut window = later.clone();
    for (counter, value) in later.iter().filter(|(counter, _)| !counter.is_level()) {
        window.set(
            counter,
            value.saturating_sub(earlier.get(counter).unwrap_or(0)),
        );
    }
    window
}
