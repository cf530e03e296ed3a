//! Long windows, of which only a part is simulated.

use weir_model::platform::Platform;
use weir_model::topology::TierKind;
use weir_model::units::Nanos;

/// How a long window is represented: a part is simulated, and its counts are scaled. After a change of the
/// running threads, time passes before counting starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Simulated after every change, and not counted.
    pub warm_up: Nanos,
    /// Simulated and counted of every window.
    pub detail: Nanos,
}

impl Default for Sampling {
    /// The time that a slow queue takes to fill.
    fn default() -> Self {
        Self {
            warm_up: Nanos::from_micros(60.0),
            detail: Nanos::from_micros(60.0),
        }
    }
}

/// After this many full tables a window shows the steady state of a queue, and not its filling.
const TABLES: f64 = 80.0;
/// The longest part of a window that is simulated.
const LONGEST: Nanos = Nanos(1e6);

impl Sampling {
    /// The time that the slowest device of a platform needs: the queue in front of it fills, drains and
    /// swings in the time in which the device serves a full Table of Requests.
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
