//! This host as a machine whose tenants are scopes: they run already, and go on after the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_model::action::{Action, Actuators, Applied, Share};
use weir_model::capability::Capability;
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::{
    Goal, Identity, Machine, MachineError, Observation, Pacing, ProcessProgress, RunNotes,
    TenantChange, TenantProgress,
};
use weir_model::tenant;
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES, Nanos};

use super::Host;
use crate::steer::actuators::Actuator;
use crate::steer::observation::TenantObservation;

/// Samples of a window, one line each, from which on they are better than the nodes of pages.
const SAMPLED: Bytes = Bytes(64 * LINE_BYTES);
/// A window of a controller.
const WINDOW: Nanos = Nanos(250e6);

impl Machine for Host {
    fn identity(&self) -> Identity {
        self.config.identity.clone()
    }

    fn topology(&self) -> &Topology {
        &self.config.topology
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn pacing(&self, _: Goal) -> Pacing {
        Pacing {
            warm_up: Nanos(0.0),
            window: WINDOW,
            least_windows: 1,
            most_windows: 1,
            relative_ci: 1.0,
        }
    }

    fn start(&mut self, _: &[tenant::Tenant]) -> Result<(), MachineError> {
        Err(MachineError::Request(
            "the tenants of this machine run already".into(),
        ))
    }

    fn observe(&mut self, window: Nanos) -> Result<Observation, MachineError> {
        let stop = Arc::clone(&self.config.stop);
        let seen = self.observe_unless(window, &|| stop.load(Ordering::Relaxed));
        let seen = seen.ok_or(MachineError::Interrupted)?;
        let tenants = seen.tenants.into_iter();
        Ok(Observation {
            tenants: tenants.map(|own| self.progress(own, seen.window)).collect(),
            window: seen.window,
            counters: seen.counters,
            probe: seen.probe,
            sampled: None,
        })
    }

    fn act(&mut self, action: &Action) -> Result<Applied, MachineError> {
        Host::act(self, action).map_err(|why| MachineError::Request(why.reason))
    }

    fn actuators(&self, tenant: &str) -> Actuators {
        let mut tenants = self.tenants.iter();
        let own = tenants.find(|own| own.name() == tenant && !own.is_retired());
        own.map_or_else(Actuators::default, |own| Actuators {
            cores: own.can(Actuator::Cores),
            time: own.can(Actuator::ProcessorTime),
            allocation: self.allocation_step(own).map(Share::of),
            clocks: self.clocks(own),
        })
    }

    fn find_tenants(&mut self) -> Vec<TenantChange> {
        self.follow_groups()
    }

    fn stop(&mut self) -> Result<RunNotes, MachineError> {
        let not = self.release();
        let warnings = not.iter().map(ToString::to_string).collect();
        match not.iter().any(|not| not.cause.is_refused()) {
            true => Err(MachineError::NotRestored(warnings)),
            false => Ok(RunNotes {
                warnings,
                ..RunNotes::default()
            }),
        }
    }
}

impl Host {
    fn progress(&self, own: TenantObservation, window: Nanos) -> TenantProgress {
        let bytes = |rate: f64| Bytes((rate * window.get()) as u64);
        let traffic = own.drew.map(|drew| bytes(drew.get()));
        let known = match &own.touched {
            Ok(touched) if touched.total() >= SAMPLED => Ok(touched),
            _ => own.pages.as_deref().map_err(Clone::clone),
        };
        let uses = known.map(|known| {
            let tiers = self.config.topology.tiers.iter();
            let on = tiers.filter_map(|tier| Some((tier, known.on(&[tier.node?]))));
            on.filter(|(_, bytes)| bytes.get() > 0)
                .map(|(tier, bytes)| (tier.name.clone(), bytes))
                .collect::<Vec<(TierName, Bytes)>>()
        });
        let mut counters = CounterSet::default();
        match own.held {
            Ok(held) => counters.set(Counter::LlcOccupancy, held.get()),
            Err(why) => counters.set_unavailable(Counter::LlcOccupancy, why),
        }
        TenantProgress {
            counters,
            bytes: traffic.clone().unwrap_or(Bytes(0)),
            process: Some(ProcessProgress {
                ran: own.ran.map(|ran| ran.time),
                traffic,
                cores: own.cores,
                busy: own.busy,
                uses,
                ended: None,
                limits: own.limits,
            }),
            ..TenantProgress::default()
        }
    }
}
