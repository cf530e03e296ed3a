//! The counters of the uncore, for the controller's readings.

use weir_model::capability::{Capability, Feature};
use weir_model::counters::{Counter, CounterSet};
use weir_model::events::{EventLibrary, EventTable};

use super::device::Devices;
use crate::perf::{self, Session};
use crate::root::Root;

/// In this order: counters that are divided by one another are in one group, and so counted at the same time.
/// Only one counter of a unit can count occupancy, so groups are multiplexed.
const WANTED: [Counter; 11] = [
    Counter::TorInsertsIa,
    Counter::TorOccupancyIa,
    Counter::ChaClockticks,
    Counter::IrqInserts,
    Counter::TorInsertsIaMissCxl,
    Counter::TorOccupancyIaMissCxl,
    Counter::IrqOccupancy,
    Counter::CasRd,
    Counter::CasWr,
    Counter::CxlRxMemData,
    Counter::CxlTxMemData,
];

/// The open counters of the uncore.
#[derive(Debug)]
pub(crate) struct Uncore {
    session: Option<Session>,
    table: Option<EventTable>,
    devices: Option<Devices>,
    capabilities: Vec<Capability>,
}

impl Uncore {
    /// Opens the counters that exist.
    pub fn open(root: &Root, library: &EventLibrary) -> Self {
        let mut capabilities = Vec::new();
        let missing = |why: String, remedy: &str| {
            let cost =
                "backlog at the Table of Requests is not seen, so no tenant is limited by it";
            Capability::missing(Feature::UncorePmu, why, cost, remedy)
        };
        let table = match perf::table(root, library) {
            Ok(table) => Some(table.clone()),
            Err(why) => {
                let remedy = "a table of this processor's events in events/";
                capabilities.push(missing(why.reason, remedy));
                None
            }
        };
        let mut session = None;
        if let Some(table) = &table {
            let mut open = Session::open(root, Some(table), &WANTED, &[]);
            let seen = Session::counters(Some(table), &open.window(), true);
            let needed = [Counter::TorInsertsIa, Counter::TorOccupancyIa];
            let blind = needed
                .into_iter()
                .find_map(|counter| seen.get(counter).err());
            capabilities.push(match blind {
                None => Capability::present(Feature::UncorePmu, "Tables of Requests are counted"),
                Some(why) => missing(
                    why.reason,
                    "a bare-metal host, and CAP_PERFMON or kernel.perf_event_paranoid below 1",
                ),
            });
            session = Some(open);
        }
        let devices = Devices::open(root);
        capabilities.push(match &devices {
            Ok(devices) => {
                let names = devices.names().join(", ");
                Capability::present(Feature::CxlPmu, format!("{names} count lines"))
            }
            Err(why) => Capability::missing(
                Feature::CxlPmu,
                why.reason.clone(),
                "the traffic to the slow tier is known only if the processor counts it",
                "Linux 6.5 with CONFIG_CXL_PMU, and a device with counters",
            ),
        });
        Self {
            session,
            table,
            devices: devices.ok(),
            capabilities,
        }
    }

    /// Its capabilities, present and missing.
    pub fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    /// Whether the Tables of Requests are counted.
    pub fn counts_tables(&self) -> bool {
        (self.capabilities.iter()).any(|known| known.feature == Feature::UncorePmu && known.present)
    }

    /// The counts since the last window.
    pub fn window(&mut self) -> CounterSet {
        let mut set = match &mut self.session {
            Some(session) => Session::counters(self.table.as_ref(), &session.window(), true),
            None => CounterSet::default(),
        };
        if let Some(devices) = &mut self.devices {
            devices.window(&mut set);
        }
        set
    }
}
