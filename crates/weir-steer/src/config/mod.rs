//! The steering file: `kind = "steer"`.

mod read;
mod write;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use weir_model::diagnostic::Mistakes;
use weir_model::tiering::KernelTiering;
use weir_model::tiering::promotion::Alto;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use crate::calibrate::Calibration;
use crate::guard::Bounds;
use crate::knee::Knee;
use crate::limit::Share;
use crate::registry::{ISOLATED, Policy};
use crate::scope::Scope;

/// The tenants, the controller, and where the state is reported.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The controller.
    pub policy: Policy,
    /// How long a window is.
    pub window: Nanos,
    /// The period in which a tenant gets its processor time.
    pub period: Nanos,
    /// Bounds for every controller.
    pub bounds: Bounds,
    /// Cores' worth of running that `isolation` leaves to all tenants that may be limited together.
    pub isolated: f64,
    /// Whether loads from the fast tier are timed.
    pub probe: Probing,
    /// Tenants whose fast tier is protected.
    pub protect: Vec<Scope>,
    /// Tenants that may be limited.
    pub restrain: Vec<Scope>,
    /// Whether a process that is a tenant, and shares its control group with others, gets a group of its own while it is
    /// steered.
    pub own_groups: bool,
    /// Whether and how other control groups become tenants automatically.
    pub automatic: Option<Automatic>,
    /// What is known of the machine.
    pub known: Known,
    /// The kernel's own tiering, if it is set.
    pub tier: Option<TierConfig>,
    /// The decision log.
    pub log: Option<LogConfig>,
    /// The status socket.
    pub socket: PathBuf,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// The folder of the journal.
    pub journal: PathBuf,
}

/// How control groups become tenants automatically.
#[derive(Debug, Clone, PartialEq)]
pub struct Automatic {
    /// Control groups that are never tenants, with everything below them.
    pub exclude: Vec<Scope>,
    /// A group may be limited if at least this part of its pages is on the slow tier; with less it is
    /// protected.
    pub slow: Share,
    /// Groups with less memory are never tenants.
    pub least: Bytes,
}

impl Default for Automatic {
    /// A quarter of the pages, at least 64 MiB, no group excluded.
    fn default() -> Self {
        Self {
            exclude: Vec::new(),
            slow: Share::of(0.25),
            least: Bytes::mib(64),
        }
    }
}

weir_model::named! {
    /// Whether loads from the fast tier are timed.
    #[derive(Default)]
    pub enum Probing {
        /// Only if the Tables of Requests are not counted.
        #[default]
        Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

/// Residencies in the Table of Requests, as measured on the machine. An unknown value is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Another file with the remaining values, written by `weir steer calibrate`.
    pub from: Option<PathBuf>,
    /// When it was measured, in UTC.
    pub measured: Option<String>,
    /// The machine's digest, as `weir topo` shows it.
    pub digest: Option<String>,
    /// A request for DRAM without load.
    pub fast: Option<Nanos>,
    /// A request for loaded DRAM.
    pub fast_loaded: Option<Nanos>,
    /// A request for the slow tier without load.
    pub slow: Option<Nanos>,
    /// A load from the slow tier when its device is just busy.
    pub slow_read: Option<Nanos>,
    /// The same for a write.
    pub slow_write: Option<Nanos>,
    /// The knees of the slow tier, in order of their share of writes.
    pub knees: Vec<Knee>,
}

/// A controller needs a residency that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the controller `{controller}` needs `{key}` of [machine], a residency in the Table of Requests: add \
     it to the configuration; `weir steer calibrate` measures it"
)]
pub struct NotKnown {
    /// The controller.
    pub controller: &'static str,
    /// The key.
    pub key: &'static str,
}

impl Known {
    /// The values measured on a machine, with the time.
    pub fn of(measured: &Calibration, digest: String, at: String) -> Self {
        // A value that was not measured is zero there.
        let known = |time: Nanos| (time.get() > 0.0).then_some(time);
        Self {
            from: None,
            measured: Some(at),
            digest: Some(digest),
            fast: known(measured.fast),
            fast_loaded: known(measured.fast_loaded),
            slow: measured.slow,
            slow_read: known(measured.slow_read),
            slow_write: known(measured.slow_write),
            knees: measured.knees.clone(),
        }
    }

    /// These values, completed by those of another file.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            from: self.from,
            measured: self.measured.or(other.measured),
            digest: self.digest.or(other.digest),
            fast: self.fast.or(other.fast),
            fast_loaded: self.fast_loaded.or(other.fast_loaded),
            slow: self.slow.or(other.slow),
            slow_read: self.slow_read.or(other.slow_read),
            slow_write: self.slow_write.or(other.slow_write),
            knees: if self.knees.is_empty() {
                other.knees
            } else {
                self.knees
            },
        }
    }

    /// Reads what `weir steer calibrate` wrote: `kind = "steer-machine"` and its `[machine]`.
    ///
    /// # Errors
    /// Every mistake, with its line and key.
    pub fn read(file: &str, text: &str) -> Result<Self, Mistakes> {
        read::read_machine(file, text)
    }

    /// The known values as a file that [`Known::read`] can read.
    pub fn to_toml(&self) -> String {
        write::to_toml(self)
    }
    /// The values that a controller needs.
    ///
    /// # Errors
    /// A value is not known.
    pub fn calibration(&self, policy: Policy) -> Result<Calibration, NotKnown> {
        let missing = |key| NotKnown {
            controller: policy.name(),
            key,
        };
        let unused = Nanos(0.0);
        let need = |wanted: bool, value: Option<Nanos>, key| match value {
            Some(value) => Ok(value),
            None if wanted => Err(missing(key)),
            None => Ok(unused),
        };
        let miku = policy == Policy::Miku;
        let by_knee = miku || policy == Policy::Allocation;
        let by_load = matches!(policy, Policy::Quota | Policy::Frequency);
        let slow_read = need(by_knee, self.slow_read, "slow_read")?;
        Ok(Calibration {
            fast: need(by_knee || policy == Policy::Weir, self.fast, "fast")?,
            fast_loaded: need(by_load, self.fast_loaded, "fast_loaded")?,
            slow: self.slow,
            slow_read,
            // The paper finds twice the residency of a load.
            slow_write: self.slow_write.unwrap_or(slow_read * 2.0),
            knees: self.knees.clone(),
        })
    }
}

/// The kernel's own tiering while the daemon runs.
#[derive(Debug, Clone, PartialEq)]
pub struct TierConfig {
    /// What follows the limit of promotion.
    pub controller: TierController,
    /// The settings. The limit of promotion is the most that is set.
    pub settings: KernelTiering,
    /// The weights of interleaving.
    pub weights: Vec<(TierName, u32)>,
    /// Control groups whose cold pages are demoted, with their rates.
    pub demote: Vec<(Scope, GbPerSec)>,
    /// Nothing is demoted of a group whose tasks waited for memory for more than this share of the time, in percent.
    pub pressure: f64,
    /// The thresholds of Alto.
    pub alto: Alto,
}

impl Default for TierConfig {
    /// Nothing is set. The pressure is that of TMO (ASPLOS 2022, section 3.3).
    fn default() -> Self {
        Self {
            controller: TierController::Fixed,
            settings: KernelTiering::default(),
            weights: Vec::new(),
            demote: Vec::new(),
            pressure: 0.1,
            alto: Alto::default(),
        }
    }
}

weir_model::named! {
    /// What sets the limit of promotion.
    #[derive(Default)]
    pub enum TierController {
        /// The configured limit, less what steering takes.
        #[default]
        Fixed = "fixed",
        /// The same, less where misses overlap.
        Alto = "alto",
    }
}

/// The decision log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// The file.
    pub path: PathBuf,
    /// A new file begins at this size.
    pub most: Bytes,
    /// The number of older files that are kept.
    pub keep: u32,
}

impl LogConfig {
    /// A log at this path, of the default size.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            most: Bytes::mib(16),
            keep: 3,
        }
    }
}

/// The default port for OpenMetrics.
const PORT: u16 = 9464;

impl Default for Config {
    /// Weir's controller with windows of 250 ms, and no tenants.
    fn default() -> Self {
        Self {
            policy: Policy::Weir,
            window: Nanos(250e6),
            period: Nanos(100e6),
            bounds: Bounds {
                floor: Share::of(0.05),
                ..Bounds::default()
            },
            isolated: ISOLATED,
            probe: Probing::Auto,
            protect: Vec::new(),
            restrain: Vec::new(),
            own_groups: false,
            automatic: None,
            known: Known::default(),
            tier: None,
            log: None,
            socket: PathBuf::from("/run/weir/steer.sock"),
            metrics: None,
            journal: PathBuf::from("/var/lib/weir/steer"),
        }
    }
}

impl Config {
    /// Reads the text of a file. `file` is its name, for messages.
    ///
    /// # Errors
    /// Every mistake, with its line and key.
    pub fn read(file: &str, text: &str) -> Result<Self, Mistakes> {
        read::read(file, text)
    }

    /// The loopback address for metrics if the file only switches them on.
    pub fn usual_metrics() -> SocketAddr {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT)
    }

    /// Scopes that contradict each other, in words; `None` if none do.
    pub fn contradiction(&self) -> Option<String> {
        let protected = self.protect.iter().map(|scope| (scope, "protected"));
        let restrained = self.restrain.iter().map(|scope| (scope, "restrained"));
        let all: Vec<(&Scope, &str)> = protected.chain(restrained).collect();
        for (i, (a, of_a)) in all.iter().enumerate() {
            for (b, of_b) in &all[..i] {
                if a.overlaps(b) {
                    return Some(contradiction(a, of_a, b, of_b));
                }
            }
        }
        None
    }
}

fn contradiction(a: &Scope, of_a: &str, b: &Scope, of_b: &str) -> String {
    match (a == b, of_a == of_b) {
        (true, true) => format!("`{a}` is {of_a} twice"),
        (true, false) => format!("`{a}` cannot be both {of_b} and {of_a}"),
        (false, _) => format!("`{a}`, {of_a}, overlaps `{b}`, {of_b}"),
    }
}
