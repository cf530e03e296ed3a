//! The file that says what is steered: `kind = "steer"`.

mod read;
mod write;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use weir_model::diagnostic::{Collector, Mistakes};
use weir_model::units::{Bytes, Nanos};

use crate::calibrate::Calibration;
use crate::guard::Bounds;
use crate::knee::Knee;
use crate::limit::Share;
use crate::registry::{ISOLATED, Policy};
use crate::scope::Scope;

/// What is steered, by whom, and where it is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Who decides.
    pub policy: Policy,
    /// How long a window is.
    pub window: Nanos,
    /// After how long a tenant's processor time is given anew.
    pub period: Nanos,
    /// What holds whatever is decided.
    pub bounds: Bounds,
    /// Cores' worth of running that `isolation` leaves to those who may be held together.
    pub isolated: f64,
    /// Whether loads from the fast tier are timed.
    pub probe: Probing,
    /// Whose fast tier is kept fast.
    pub protect: Vec<Scope>,
    /// Who may be held.
    pub restrain: Vec<Scope>,
    /// Whether and how other control groups become tenants by themselves.
    pub automatic: Option<Automatic>,
    /// What is known of the machine.
    pub known: Known,
    /// Where decisions are written down.
    pub log: Option<LogConfig>,
    /// The socket that tells how it is.
    pub socket: PathBuf,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// The folder of the journal.
    pub journal: PathBuf,
}

/// How control groups become tenants that nobody named.
#[derive(Debug, Clone, PartialEq)]
pub struct Automatic {
    /// Who is left alone, with everything below.
    pub exclude: Vec<Scope>,
    /// The part of a group's pages on the slow tier from which on it may be held; with less it is protected.
    pub slow: Share,
    /// Groups with less memory are left alone.
    pub least: Bytes,
}

impl Default for Automatic {
    /// A quarter of at least 64 MiB, nobody excluded.
    fn default() -> Self {
        Self {
            exclude: Vec::new(),
            slow: Share::of(0.25),
            least: Bytes::mib(64),
        }
    }
}

/// Whether loads from the fast tier are timed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Probing {
    /// Where the Tables of Requests are not counted.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// Never.
    Never,
}

impl Probing {
    /// All of them.
    pub const ALL: [Probing; 3] = [Probing::Auto, Probing::Always, Probing::Never];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Probing::Auto => "auto",
            Probing::Always => "always",
            Probing::Never => "never",
        }
    }

    /// What a word means.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|probing| probing.name() == name)
    }
}

/// Residencies in the Table of Requests, as measured on the machine. What is not known is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Another file that says the rest: what `weir steer calibrate` wrote.
    pub from: Option<PathBuf>,
    /// When it was measured, in UTC.
    pub measured: Option<String>,
    /// Of which machine, as `weir topo` identifies it.
    pub digest: Option<String>,
    /// Of a request for DRAM at rest.
    pub fast: Option<Nanos>,
    /// Of a request for DRAM while it is loaded.
    pub fast_loaded: Option<Nanos>,
    /// Of a request for the slow tier at rest.
    pub slow: Option<Nanos>,
    /// Of a load from the slow tier when its device is just busy.
    pub slow_read: Option<Nanos>,
    /// The same of a write.
    pub slow_write: Option<Nanos>,
    /// Where the slow tier is busy and has no queue yet, in order of what is written.
    pub knees: Vec<Knee>,
}

/// A controller needs a residency that nobody has measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the controller `{controller}` has to know `{key}` of [machine], a residency in the Table of Requests: add \
     it to the configuration; `weir steer calibrate` measures it"
)]
pub struct NotKnown {
    /// Who has to know.
    pub controller: &'static str,
    /// What.
    pub key: &'static str,
}

impl Known {
    /// What was measured of a machine, and when.
    pub fn of(measured: &Calibration, digest: String, at: String) -> Self {
        // What was not measured is zero there.
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

    /// This, and what another file says where this says nothing.
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
        let mut mistakes = Collector::new(file, text);
        let known = read::read_machine(text, &mut mistakes);
        mistakes.finish(Some(known))
    }

    /// What is known, as a file that [`Known::read`] reads.
    pub fn to_toml(&self) -> String {
        write::to_toml(self)
    }
    /// What a controller has to know of the machine.
    ///
    /// # Errors
    /// It is not known.
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
            // The paper finds twice that of a load.
            slow_write: self.slow_write.unwrap_or(slow_read * 2.0),
            knees: self.knees.clone(),
        })
    }
}

/// Where decisions are written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// The file.
    pub path: PathBuf,
    /// It is begun anew when it has this size.
    pub most: Bytes,
    /// So many older files are kept.
    pub keep: u32,
}

impl LogConfig {
    /// A log at this place, of the usual size.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            most: Bytes::mib(16),
            keep: 3,
        }
    }
}

/// The port that OpenMetrics is served on unless told otherwise.
const PORT: u16 = 9464;

impl Default for Config {
    /// Weir's controller at windows of 250 ms, nobody named yet.
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
            automatic: None,
            known: Known::default(),
            log: None,
            socket: PathBuf::from("/run/weir/steer.sock"),
            metrics: None,
            journal: PathBuf::from("/var/lib/weir/steer"),
        }
    }
}

impl Config {
    /// Reads a file's text. `file` is its name, for messages.
    ///
    /// # Errors
    /// Every mistake, with its line and key.
    pub fn read(file: &str, text: &str) -> Result<Self, Mistakes> {
        let mut mistakes = Collector::new(file, text);
        let config = read::read(text, &mut mistakes);
        mistakes.finish(Some(config))
    }

    /// The loopback address that metrics are served on where only that they are is said.
    pub fn usual_metrics() -> SocketAddr {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT)
    }

    /// Scopes that contradict each other, in words; nothing where none do.
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
