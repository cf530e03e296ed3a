//! Long windows, of which a part is simulated.

use weir_model::platform::Platform;
use weir_model::topology::TierKind;
use weir_model::units::Nanos;

/// How a long window is represented: so much of it is simulated, and what was counted is scaled. A
/// change of what runs is given time to show before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Simulated after every change, and not counted.
    pub warm_up: Nanos,
    /// Simulated and counted of every window.
    pub detail: Nanos,
}

impl Default for Sampling {
    /// As long as a queue takes that fills slowly.
    fn default() -> Self {
        Self {
            warm_up: Nanos::from_micros(60.0),
            detail: Nanos::from_micros(60.0),
        }
    }
}

/// Windows show how a queue ends and not how it fills once so many full tables have passed.
const TABLES: f64 = 80.0;
/// The most that is simulated of a window.
const LONGEST: Nanos = Nanos(1e6);

impl Sampling {
    /// As long as a platform's slowest device needs: what is in front of it fills, drains and swings in the time
    /// that it takes to serve a full Table of Requests.
    pub fn of(platform: &Platform) -> Self {
        let host = &platform.host;
        let table = f64::from(*host.uncore.tor) * f64::from(*host.llc.slices);
        let measured = (platform.devices.iter()).filter_map(|d| d.device.measured.read.as_deref());
        let carried = (platform.topology().tiers.into_iter())
            .filter(|tier| tier.kind == TierKind::Cxl)
            .filter_map(|tier| tier.limits)
            .map(|limits| limits.read);
        let slowest =
            (measured.copied().chain(carried)).fold(*host.dram.measured.read, |least, read| {
                match read < least {
                    true => read,
                    false => least,
                }
            });
        let long = slowest.line_time() * (table * TABLES);
        let time = Nanos(
            long.get()
                .clamp(Self::default().detail.get(), LONGEST.get()),
        );
        Self {
            warm_up: time,
            detail: time,
        }
    }
}
