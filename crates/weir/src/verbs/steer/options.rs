//! What a run is asked for: its arguments, with tenants as users name them (scopes of this host, streams and programs of a
//! model).

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::PossibleValuesParser;
use weir_lab::interplay::{CoRunners, per_second};
use weir_model::scope::Scope;
use weir_model::units::Nanos;
use weir_steer::config::Probing;
use weir_steer::registry::Policy;

use crate::context::between;
use crate::failure::{Failure, Result};

/// What scopes begin with.
const SCOPES: [&str; 4] = ["cgroup", "unit", "container", "pid"];

/// A window of the control loop, or a period of processor time.
pub(super) fn window(text: &str) -> std::result::Result<Nanos, String> {
    between(text, "1ms", "60s")
}

/// Arguments of a run.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  weir steer run --on miku-a --scenario alternate100s
  weir steer run --on miku-a --scenario small-and-bully --controller quota \\
      --for '10 s' --format json
  weir steer run --config /etc/weir/steer.toml

On this host it runs until a stop is requested (Ctrl-C, SIGTERM), and then
restores everything. A scope is cgroup:/PATH, unit:NAME.service, container:ID
or pid:NUMBER. Arguments override the configuration. On a model tenants run
for --for, 10 s by default; a stream has up to 16 threads.")]
pub struct RunArgs {
    /// The scenario on a model: `weir steer scenarios` lists them.
    #[arg(long, value_name = "NAME", 
        conflicts_with_all = ["config", "protect", "restrain", "auto", "fast", "probe", "log", "socket", "journal"])]
    pub(super) scenario: Option<String>,
    /// On this host: a configuration, as docs/steer.md describes it.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Tenants whose fast tier is protected: SCOPE on this host; TIER:OP or TIER:PROGRAM on a model.
    #[arg(long, value_name = "TENANT", value_delimiter = ',')]
    pub(super) protect: Vec<Named>,
    /// Tenants that may be limited, named in the same way.
    #[arg(long, value_name = "TENANT", value_delimiter = ',')]
    pub(super) restrain: Vec<Named>,
    /// On a model: requests that arrive in a second, of each named program that answers requests.
    #[arg(long, value_name = "N", requires = "protect", value_parser = per_second)]
    pub(super) rate: Option<f64>,
    /// On this host: control groups become tenants, by the nodes of their pages.
    #[arg(long)]
    pub(super) auto: bool,
    /// How long a request for DRAM without load stays in the Table of Requests here.
    #[arg(long, value_name = "TIME")]
    pub(super) fast: Option<Nanos>,
    /// On this host: whether loads from the fast tier are timed; auto times them if the Table of Requests is
    /// not counted [default: auto].
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(Probing::ALL.map(Probing::name)))]
    pub(super) probe: Option<String>,
    /// The decision log.
    #[arg(long, value_name = "FILE")]
    pub(super) log: Option<PathBuf>,
    /// The status socket [default: /run/weir/steer.sock].
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
    /// The folder of the journal [default: /var/lib/weir/steer].
    #[arg(long, value_name = "FOLDER")]
    pub(super) journal: Option<PathBuf>,
    /// On a model: the actuators of tenants: cores, time, allocation, clock [default: all].
    #[arg(long = "means", value_name = "MEANS", value_delimiter = ',', conflicts_with = "config", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["cores", "time", "allocation", "clock"]))]
    pub(super) actuators: Vec<String>,
    /// The controller [default: weir].
    #[arg(long, value_parser = PossibleValuesParser::new(Policy::ALL.map(Policy::name)))]
    pub(super) controller: Option<String>,
    /// The length of a window [default: 250 ms].
    #[arg(long, value_name = "TIME", value_parser = window)]
    pub(super) window: Option<Nanos>,
    /// The period in which a tenant gets its processor time [default: 100 ms].
    #[arg(long, value_name = "TIME", value_parser = window)]
    pub(super) period: Option<Nanos>,
    /// End after this time [default: at the end of the scenario; on this host, never].
    #[arg(long = "for", value_name = "TIME")]
    pub(super) lasts: Option<Nanos>,
}

/// A tenant.
#[derive(Debug, Clone)]
pub(super) enum Named {
    /// Of this host.
    Scope(Scope),
    /// Of a model, as it was written.
    Tenant(CoRunners, String),
}

impl Named {
    /// The program that it names, if it does.
    pub(super) fn program(&self) -> Option<&str> {
        match self {
            Self::Tenant(CoRunners::Program(placed), _) => Some(&placed.program),
            _ => None,
        }
    }
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let kind = text.trim().split(':').next().unwrap_or_default();
        if SCOPES.contains(&kind) || !text.contains(':') {
            return text
                .parse()
                .map(Self::Scope)
                .map_err(|why: weir_model::scope::NoScope| why.to_string());
        }
        let tenant: CoRunners = text.parse()?;
        Ok(Self::Tenant(tenant, text.to_owned()))
    }
}

/// The scopes among the tenants of this host.
///
/// # Errors
/// One is of a model.
pub(super) fn scopes(named: &[Named]) -> Result<Vec<Scope>> {
    let one = |named: &Named| match named {
        Named::Scope(scope) => Ok(scope.clone()),
        Named::Tenant(_, text) => Err(Failure::request(format!(
            "`{text}` is a tenant of a model, which --on names; a tenant of this host is cgroup:/PATH, \
             unit:NAME.service, container:ID or pid:NUMBER"
        ))),
    };
    named.iter().map(one).collect()
}

/// The streams and programs among the tenants of a model.
///
/// # Errors
/// One is a scope.
pub(super) fn tenants(named: &[Named]) -> Result<Vec<CoRunners>> {
    let one = |named: &Named| match named {
        Named::Tenant(tenant, _) => Ok(tenant.clone()),
        Named::Scope(scope) => Err(Failure::request(format!(
            "`{scope}` is a tenant of a host, and --on names a model; a tenant of a model is TIER:OP or TIER:PROGRAM, \
             as cxl0:nt_st or dram:redis-ycsb-a"
        ))),
    };
    named.iter().map(one).collect()
}
