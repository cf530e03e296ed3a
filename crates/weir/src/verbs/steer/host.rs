//! Steering of this host: from the request to the loop, with everything restored at its end.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use sd_notify::NotifyState;
use weir_linux::clock::Uptime;
use weir_linux::steer::automatic::Rules;
use weir_linux::steer::{Host, HostConfig, HostError, TenantScope, Watchdog};
use weir_model::capability::Feature;
use weir_model::events::EventLibrary;
use weir_model::machine::Identity;
use weir_model::tenant::{Tenant, Work};
use weir_model::topology::{TierKind, TierName, Topology};
use weir_steer::Role;
use weir_steer::config::{Automatic, Config, LogConfig, Probing};
use weir_steer::controller::Needs;
use weir_steer::daemon::{Ended, steer};
use weir_steer::limit::words;
use weir_steer::registry::Policy;
use weir_steer::scenario_run::tier_names;
use weir_steer::scope::Scope;
use weir_steer::steered::{Released, Steered, SteeredTenant};

use super::log_file::LogFile;
use super::options::{self, RunArgs};
use super::reporter::{Beginning, Reporter, SharedStatus, notify};
use super::{config_file, scrape, socket, tier};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::nodes::here;
use crate::output::print;
use crate::session::say;

/// Windows from one reading of a tenant's pages to the next, if the pages do not move: without a memory
/// controller the kernel walks page tables for it.
const LOOK_AT_PAGES: u32 = 1024;
/// The most automatic tenants: the observation of each costs some microseconds a window.
const MOST: usize = 256;

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Refused(_) => Failure::Request(error.into()),
            HostError::Missing(_) => Failure::Missing(error.into()),
            HostError::Journal(_) => Failure::Work(error.into()),
        }
    }
}

/// The configuration of a request: its file, overridden by the arguments.
pub(super) fn config(args: &RunArgs) -> Result<Config> {
    if args.scenario.is_some() {
        return Err(Failure::request(
            "a scenario runs on a model; name one with --on, as in --on miku-a",
        ));
    }
    for (given, flag) in [
        (!args.actuators.is_empty(), "--means"),
        (args.rate.is_some(), "--rate"),
    ] {
        if given {
            return Err(Failure::request(format!(
                "{flag} is of a model: name one with --on, and a scenario with --scenario or tenants with --protect"
            )));
        }
    }
    let mut config = match &args.config {
        Some(path) => config_file::read(path)?,
        None => Config::default(),
    };
    if let Some(name) = &args.controller {
        config.policy = Policy::named(name).unwrap_or(config.policy);
    }
    config.window = args.window.unwrap_or(config.window);
    config.period = args.period.unwrap_or(config.period);
    if let Some(name) = &args.probe {
        config.probe = Probing::named(name).unwrap_or(config.probe);
    }
    config.known.fast = args.fast.or(config.known.fast);
    if !args.protect.is_empty() {
        config.protect = options::scopes(&args.protect)?;
    }
    if !args.restrain.is_empty() {
        config.restrain = options::scopes(&args.restrain)?;
    }
    if let Some(log) = &args.log {
        config.log = Some(LogConfig::at(log.clone()));
    }
    if let Some(socket) = &args.socket {
        config.socket.clone_from(socket);
    }
    if let Some(journal) = &args.journal {
        config.journal.clone_from(journal);
    }
    if args.auto {
        config.automatic.get_or_insert_default();
    }
    if config.automatic.is_none() && (config.protect.is_empty() || config.restrain.is_empty()) {
        return Err(Failure::request(
            "name the tenants that are protected and those that may be limited, with --protect and --restrain or in \
             [tenants] of a configuration: cgroup:/PATH, unit:NAME.service, container:ID or pid:NUMBER; \
             or have them found by where their pages lie, with --auto",
        ));
    }
    if let Some(why) = config.contradiction() {
        return Err(Failure::request(why));
    }
    Ok(config)
}

/// Steers this host until a stop is requested.
pub(super) fn run(args: &RunArgs, context: &Context, dry: bool) -> Result<()> {
    let mut config = config(args)?;
    let known = |config: &Config| {
        let known = config.known.calibration(config.policy);
        known.map_err(|error| Failure::Request(error.into()))
    };
    // `weir` can learn everything that it needs.
    let learns = config.policy == Policy::Weir && config.known.fast.is_none();
    if !learns {
        known(&config)?;
    }
    let system = here(context)?;
    let root = system.root.clone();
    let topology = system.view.topology()?;
    let digest = system.identity.digest.clone();
    let journal = (!dry).then_some(config.journal.as_path());
    let library = EventLibrary::builtin();
    let planned = (config.tier.as_ref())
        .map(|of| tier::plan(of, &system, &topology, &library))
        .transpose()?;
    let identity = system.identity.clone();
    let host_config = HostConfig {
        stop: context.stop.flag(),
        ..host_config(&config, identity, &topology)
    };
    if !dry {
        context.stop.waits_for("everything to be restored");
        context
            .stop
            .then("`weir steer restore` restores what is left changed");
    }
    let (mut host, restored) = Host::open(&root, host_config, &library, journal)?;
    for path in &restored.put_back {
        context.note(&format!("restored what an earlier run had left: {path}"));
    }
    for remark in restored.remarks() {
        say(&format!("weir: warning: {remark}"));
    }
    if learns {
        let took = host.try_loads();
        let took = took.map_err(|why| Failure::Missing(anyhow!(
            "`fast` of [machine] is not known, and loads cannot be timed to learn it: {why}; add it, or \
             `weir steer calibrate` what is to be known"
        )))?;
        config.known.fast = Some(took);
    }
    let known = known(&config)?;
    let mut lost = lost(&host, config.policy);
    lost.extend(unknown(&config, learns, &digest));
    for what in &lost {
        context.note(what);
    }
    let tier = planned.map(|planned| {
        if dry {
            print(&format!("would be set: {}\n", planned.words()))?;
        }
        planned.begin(&root, host.releaser())
    });
    let tier = tier.transpose()?;
    if let Some(tier) = &tier {
        context.note(&format!("in force: {}", tier.words()));
    }
    let patience = patience(&config);
    let releaser = host.releaser();
    let watchdog = Watchdog::start(patience, move || {
        say(match dry {
            true => {
                "weir: the loop has stopped: what was changed is restored; a dry run sets no limits"
            }
            false => "weir: the loop has stopped: all limits are removed",
        });
        match releaser.release_within(patience) {
            Ok(different) => different
                .iter()
                .for_each(|not| say(&format!("weir: {not}"))),
            Err(why) => say(&format!("weir: {why}")),
        }
    })
    .map_err(|error| Failure::Work(anyhow!(error).context("cannot watch the loop")))?;
    let participants = participants(&host, config.protect.len());
    let mut steered = Steered::running(&mut host, participants, config.period).dry(dry);
    if config.automatic.is_some() {
        if slow_nodes(&topology).is_empty() {
            return Err(Failure::Missing(anyhow!(
                "tenants are found by their pages on the slow tier, and this host has no node of one; name \
                 them with --protect and --restrain"
            )));
        }
        for shared in steered.find() {
            match dry {
                true => print(&format!("{shared}\n"))?,
                false => context.note(&shared),
            }
        }
    }
    let actuators = steered.actuators();
    let bounds = config.bounds.clone();
    let controller = match config.policy {
        Policy::Isolation => Policy::isolation(config.isolated, bounds),
        policy => policy.controller(&known, &actuators, bounds),
    };
    let tiers = tier_names(&topology);
    let shared = SharedStatus::new(Beginning {
        plant: "host".into(),
        controller: config.policy.name(),
        dry,
        window: Duration::from_nanos(config.window.get() as u64),
        tiers: tiers.clone(),
        lost,
        pid: Some(std::process::id()),
    });
    let (log, _socket) = publish(&config, &shared);
    let end = args.lasts.and_then(|lasts| {
        let lasts = Duration::try_from_secs_f64(lasts.as_secs()).ok()?;
        Uptime::now().all.checked_add(lasts)
    });
    let quiet = context.global.quiet;
    let watched = sd_notify::watchdog_enabled();
    if let Some(least) = watched {
        let allowed = allowed(least, patience).as_micros();
        notify(NotifyState::WatchdogUsec(
            u32::try_from(allowed).unwrap_or(u32::MAX),
        ));
    }
    let each = |shared: &SharedStatus| {
        watchdog.turn();
        if watched.is_some() {
            notify(NotifyState::Watchdog);
        }
        if dry && !quiet {
            tell(shared);
        }
    };
    let mut reporter = Reporter::new(shared, log, &context.stop, end, each).with_tier(tier);
    notify(NotifyState::Ready);
    let ended = steer(
        &mut steered,
        controller,
        config.window,
        &tiers,
        &mut reporter,
    );
    notify(NotifyState::Stopping);
    finish(ended)
}

/// Values of this host that are unknown or may be wrong, and the effect.
fn unknown(config: &Config, learns: bool, digest: &str) -> Vec<String> {
    let known = &config.known;
    let mut warnings = Vec::new();
    if let (true, Some(fast)) = (learns, known.fast) {
        warnings.push(format!(
            "`fast` is not known: {fast:.0} is used, the shortest latency of loads now"
        ));
    }
    if config.policy == Policy::Weir && known.knees.is_empty() {
        warnings.push(
            "the knees of the slow tier are not known, and are learnt on the way; `weir steer calibrate` \
             measures them"
                .into(),
        );
    }
    if known.digest.as_deref().is_some_and(|of| of != digest) {
        let at = known.measured.as_deref().unwrap_or("some time");
        warnings.push(format!(
            "what is known was measured at {at} on another machine, or under another kernel; `weir steer \
             calibrate` measures it anew"
        ));
    }
    warnings
}

/// Capabilities that this host lacks, with the effect of each under a controller.
fn lost(host: &Host, policy: Policy) -> Vec<String> {
    let missing = host.capabilities().iter().filter(|c| !c.present);
    let mut lost: Vec<String> = missing
        .map(|c| format!("{} is missing: {}; effect: {}", c.feature, c.detail, c.cost))
        .collect();
    let is_counted =
        (host.capabilities().iter()).any(|c| c.feature == Feature::UncorePmu && c.present);
    let needs = policy.needs();
    if !is_counted && (needs == Needs::Table || needs == Needs::TableOrProbe && !host.is_probed()) {
        lost.push(format!(
            "the controller `{}` has no readings here, and will set no limits; `isolation` needs no readings",
            policy.name()
        ));
    }
    lost
}

/// The longest time without a turn of the loop: three windows, as long as counters may be silent, and a
/// second for a busy machine.
fn patience(config: &Config) -> Duration {
    Duration::from_nanos(config.window.get() as u64) * 3 + Duration::from_secs(1)
}

/// The time after which the service manager may end the process: the loop has stopped for as long as `patience`, and
/// removing all limits took as long again.
fn allowed(least: Duration, patience: Duration) -> Duration {
    least.max(patience * 2)
}

fn finish(ended: Ended) -> Result<()> {
    let Released {
        different,
        is_refused,
    } = ended.released;
    for not in &different {
        say(&format!("weir: {not}"));
    }
    if let Some(why) = ended.failure {
        return Err(why.into());
    }
    match is_refused {
        true => Err(Failure::work(
            "not everything could be restored, or recorded as restored",
        )),
        false => Ok(()),
    }
}

/// The log, the metrics and the status socket. If one is not available, this is reported as a trouble, and
/// steering continues.
fn publish(config: &Config, shared: &SharedStatus) -> (Option<LogFile>, Option<socket::Socket>) {
    let troubled = shared.clone();
    let log = config.log.as_ref().and_then(|log| {
        let opened = LogFile::open(log, move |what| troubled.trouble(what));
        let path = log.path.display();
        opened
            .map_err(|error| shared.trouble(format!("the decision log {path}: {error}")))
            .ok()
    });
    let metrics = config.metrics.and_then(|at| {
        let scraped = shared.clone();
        let text = move || super::metrics::exposition(&scraped.lock().clone());
        scrape::serve(at, text)
            .map_err(|error| shared.trouble(format!("metrics at {at}: {error}")))
            .ok()
    });
    let asked = shared.clone();
    let socket = socket::serve(&config.socket, move || asked.json());
    let path = config.socket.display();
    let socket = socket
        .map_err(|error| shared.trouble(format!("the status socket {path}: {error}")))
        .ok();
    let log_path: Option<PathBuf> = log
        .as_ref()
        .and_then(|_| config.log.as_ref().map(|log| log.path.clone()));
    shared.keeps(log_path, metrics.map(|at| at.to_string()));
    (log, socket)
}

/// A decision of a dry run, in one line.
fn tell(shared: &SharedStatus) {
    let status = shared.lock();
    let Some(window) = status.last() else {
        return;
    };
    let mut line = format!("{:8.2} s  {}", window.t_s, window.why.rule);
    for action in &window.actions {
        line += &format!("; {}: {}", action.tenant, words(&action.requested));
    }
    line.push('\n');
    drop(status);
    // A closed standard output is no reason to end: the log continues.
    let _ = print(&line);
}

/// The tenants of a host, the protected first.
fn participants(host: &Host, protected: usize) -> Vec<SteeredTenant> {
    let tenants = host.tenants().iter().enumerate();
    let participant = |(i, own): (usize, &weir_linux::steer::Tenant)| SteeredTenant {
        tenant: Tenant::of_host(
            own.name().to_owned(),
            Work::Scope(own.scope().clone()),
            own.cpus().to_vec(),
        ),
        role: match i < protected {
            true => Role::Protected,
            false => Role::Restrained,
        },
    };
    tenants.map(participant).collect()
}

fn host_config(config: &Config, identity: Identity, topology: &Topology) -> HostConfig {
    let protect = config.protect.iter().map(|scope| (scope, false));
    let restrain = config.restrain.iter().map(|scope| (scope, true));
    let tenants = protect
        .chain(restrain)
        .map(|(scope, restrain)| TenantScope {
            name: scope.to_string(),
            scope: scope.clone(),
            restrain,
        })
        .collect();
    HostConfig {
        identity,
        topology: topology.clone(),
        automatic: (config.automatic.as_ref()).map(|automatic| rules(automatic, topology)),
        tenants,
        own_groups: config.own_groups,
        floor: config.bounds.floor.get(),
        slow_nodes: slow_nodes(topology),
        fast_node: topology.tier(&TierName::dram()).and_then(|tier| tier.node),
        probe: match config.probe {
            Probing::Auto => weir_linux::steer::Probing::Auto,
            Probing::Always => weir_linux::steer::Probing::Always,
            Probing::Never => weir_linux::steer::Probing::Never,
        },
        sample: true,
        look_at_pages: LOOK_AT_PAGES,
        ..HostConfig::default()
    }
}

/// The rules by which control groups become tenants.
fn rules(automatic: &Automatic, topology: &Topology) -> Rules {
    let path = |scope: &Scope| match scope {
        Scope::Cgroup(path) => Some(path.clone()),
        _ => None,
    };
    Rules {
        slow_nodes: slow_nodes(topology),
        slow_share: automatic.slow.get(),
        least: automatic.least,
        exclude: automatic.exclude.iter().filter_map(path).collect(),
        most: MOST,
    }
}

fn slow_nodes(topology: &Topology) -> Vec<u32> {
    let slow = topology.tiers.iter().filter(|tier| {
        matches!(
            tier.kind,
            TierKind::Cxl | TierKind::RemoteCxl | TierKind::CpuLess
        )
    });
    slow.filter_map(|tier| tier.node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_manager_waits_longer_than_any_window() {
        let unit = include_str!("../../../../../docs/steer/weir-steer.service");
        let least = unit
            .lines()
            .find_map(|line| line.strip_prefix("WatchdogSec="));
        let least = least.and_then(|text| text.strip_suffix('s')).unwrap();
        let least = Duration::from_secs(least.parse().unwrap());
        for window in ["10 ms", "250 ms", "60 s"] {
            let text = format!("kind = \"steer\"\n[control]\nwindow = \"{window}\"\n");
            let config = Config::read("steer.toml", &text).unwrap();
            let allowed = allowed(least, patience(&config));
            assert!(allowed > patience(&config) && allowed >= least);
            assert!(u32::try_from(allowed.as_micros()).is_ok());
        }
    }
}
