//! Reading the file.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use weir_model::diagnostic::Mistakes;
use weir_model::tiering::promotion::Alto;
use weir_model::tiering::{Balancing, KernelTiering};
use weir_model::toml::{self, Field, Table};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Cycles, GbPerSec, Nanos};

use super::{
    Automatic, Config, Known, LogConfig, Probing, TierConfig, TierController, contradiction,
};
use crate::knee::Knee;
use crate::limit::{Grain, Share};
use crate::registry::Policy;
use crate::scope::Scope;

/// What the files are, in messages.
const WHAT: &str = "a steering file";
/// Scopes that a list may have.
const MOST_SCOPES: usize = 1024;
/// Groups that may be demoted.
const MOST_GROUPS: usize = 64;
/// Mixes of reads and writes that may be known of a machine.
const MOST_KNEES: usize = 64;

const MILLISECOND: Nanos = Nanos(1e6);

/// Reads a configuration. What it leaves out has its usual value.
pub(super) fn read(file: &str, text: &str) -> Result<Config, Mistakes> {
    toml::read(file, text, WHAT, |root| {
        let mut config = Config::default();
        let kind = root.expect_kind("steer", "a configuration of steering");
        control(&root.section("control"), &mut config);
        tenants(&root.section("tenants"), &mut config);
        config.known = machine(&root.section("machine"));
        let of_tier = tier(&root.section("tier"));
        config.tier = root.has("tier").then_some(of_tier);
        log(&root.section("log"), &mut config);
        let status = root.section("status");
        set(&mut config.socket, path(&status, "socket"));
        status.done(WHAT);
        let journal = root.section("journal");
        set(&mut config.journal, path(&journal, "folder"));
        journal.done(WHAT);
        let listen = metrics(&root.section("metrics"));
        let usual = root.has("metrics").then(Config::usual_metrics);
        config.metrics = listen.or(usual);
        root.done(WHAT);
        kind.map(|()| config)
    })
}

/// Reads what is known of a machine, from a file of its own.
pub(super) fn read_machine(file: &str, text: &str) -> Result<Known, Mistakes> {
    toml::read(file, text, WHAT, |root| {
        let kind = root.expect_kind("steer-machine", "a description of a machine");
        let table = root.section("machine");
        let known = machine(&table);
        root.done(WHAT);
        if known.from.is_some() {
            let message = "this file is named by another, and cannot name a third";
            table.wrong("from", message, None);
        }
        kind.map(|()| known)
    })
}

/// Puts a value that the file has in place of the usual one.
fn set<T>(usual: &mut T, read: Option<T>) {
    if let Some(read) = read {
        *usual = read;
    }
}

fn time(field: &Field<'_>, low: Nanos, high: Nanos) -> Option<Nanos> {
    field.quantity_within("a time such as \"250 ms\"", low..=high)
}

/// A path that starts at the root: a service has no folder of its own.
fn path(table: &Table<'_>, key: &str) -> Option<PathBuf> {
    let field = table.get(key)?;
    let text = field.text()?;
    match text.starts_with('/') {
        true => Some(PathBuf::from(text)),
        false => field.must_be("a path that starts at the root, since a service has no folder"),
    }
}

fn control(table: &Table<'_>, config: &mut Config) {
    let [
        policy,
        window,
        period,
        floor,
        dwell,
        silence,
        keep_fast,
        keep_slow,
        isolated,
        probe,
    ] = [
        "controller",
        "window",
        "period",
        "floor_pct",
        "dwell",
        "silence",
        "keep_fast_pct",
        "keep_slow_pct",
        "isolated_cores",
        "probe",
    ]
    .map(|key| table.get(key));
    table.done(WHAT);
    let window = window.and_then(|f| time(&f, MILLISECOND * 10.0, MILLISECOND * 6e4));
    set(&mut config.window, window);
    // The period that `cpu.max` takes.
    let period = period.and_then(|f| time(&f, MILLISECOND, MILLISECOND * 1e3));
    set(&mut config.period, period);
    let policy = policy.and_then(|f| f.word(&Policy::ALL, Policy::name));
    set(&mut config.policy, policy);
    let isolated = isolated.and_then(|f| f.number(0.01..=4096.0));
    set(&mut config.isolated, isolated);
    let probe = probe.and_then(|f| f.word(&Probing::ALL, Probing::name));
    set(&mut config.probe, probe);
    let floor = floor.and_then(|f| f.number(1.0..=100.0));
    set(&mut config.bounds.floor, floor.map(percent));
    let kept = |field: Option<Field<'_>>| field?.number(1.0..=100.0).map(percent);
    set(&mut config.bounds.keep.fast, kept(keep_fast));
    set(&mut config.bounds.keep.slow, kept(keep_slow));
    let dwell = dwell.and_then(|f| f.whole(0..=1000));
    set(&mut config.bounds.dwell, dwell.map(|n| n as u32));
    let silence = silence.and_then(|f| f.whole(1..=1000));
    set(&mut config.bounds.silence, silence.map(|n| n as u32));
}

fn percent(percent: f64) -> Share {
    Share::of(percent / 100.0)
}

fn tenants(table: &Table<'_>, config: &mut Config) {
    let [protect, restrain, exclude] =
        ["protect", "restrain", "exclude"].map(|key| scopes(table, key));
    let [asked, slow, least, own] =
        ["automatic", "slow_pct", "least", "own_groups"].map(|key| table.get(key));
    table.done(WHAT);
    set(&mut config.own_groups, own.and_then(|f| f.flag()));
    let protected = protect.iter().map(|scope| (scope, "protected"));
    let restrained = restrain.iter().map(|scope| (scope, "restrained"));
    let all: Vec<_> = protected.chain(restrained).collect();
    for (i, ((scope, field), what)) in all.iter().enumerate() {
        let earlier = all[..i]
            .iter()
            .find(|((other, _), _)| scope.overlaps(other));
        if let Some(((other, _), of_other)) = earlier {
            field.report(contradiction(scope, what, other, of_other), None);
        }
    }
    for (scope, field) in &exclude {
        if !matches!(scope, Scope::Cgroup(_)) {
            let message = "only control groups can be excluded, as cgroup:/PATH";
            field.report(message, None);
        }
    }
    let only =
        |scopes: Vec<(Scope, Field<'_>)>| scopes.into_iter().map(|(scope, _)| scope).collect();
    let mut automatic = Automatic {
        exclude: only(exclude),
        ..Automatic::default()
    };
    let slow = slow.and_then(|f| f.number(1.0..=100.0));
    set(&mut automatic.slow, slow.map(percent));
    let least = least.and_then(|f| f.quantity("a size such as \"64 MiB\""));
    set(&mut automatic.least, least);
    let asked = asked.and_then(|f| f.flag());
    config.automatic = asked.unwrap_or(false).then_some(automatic);
    config.protect = only(protect);
    config.restrain = only(restrain);
}

/// The scopes of a list, each with its place.
fn scopes<'d>(table: &Table<'d>, key: &str) -> Vec<(Scope, Field<'d>)> {
    let list = table
        .get(key)
        .and_then(|field| field.list("scopes", MOST_SCOPES));
    let scope = |field: Field<'d>| Some((field.read("a scope", Scope::from_str)?, field));
    list.into_iter().flatten().filter_map(scope).collect()
}

fn machine(table: &Table<'_>) -> Known {
    let residency = |key| time(&table.get(key)?, Nanos(1.0), MILLISECOND);
    let words = |key| Some(table.get(key)?.text()?.to_owned());
    let knees = table.get("knee").and_then(|field| field.tables(MOST_KNEES));
    let mut knees: Vec<Knee> = knees.iter().flatten().filter_map(knee).collect();
    knees.sort_by(|a, b| a.writes.total_cmp(&b.writes));
    let known = Known {
        from: path(table, "from"),
        measured: words("measured"),
        digest: words("digest"),
        fast: residency("fast"),
        fast_loaded: residency("fast_loaded"),
        slow: residency("slow"),
        slow_read: residency("slow_read"),
        slow_write: residency("slow_write"),
        knees,
    };
    table.done(WHAT);
    known
}

fn knee(table: &Table<'_>) -> Option<Knee> {
    let [writes, rest, residency, gives, units] = [
        ("writes", "0.5"),
        ("rest", "\"120 ns\""),
        ("residency", "\"250 ns\""),
        ("gives", "\"24.1 GB/s\""),
        ("units", "4"),
    ]
    .map(|(key, example)| table.need(key, example));
    let [much, grain, step] = ["much", "grain", "step"].map(|key| table.get(key));
    table.done("a knee");
    let step = step.and_then(|f| f.number(0.001..=1.0)).map(Share::of);
    let grain = match grain {
        Some(field) => match (field.word(&["time", "wide", "narrow"], |name| name)?, step) {
            ("time", _) => Grain::Time,
            ("wide", Some(step)) => Grain::Wide(step),
            ("narrow", Some(step)) => Grain::Narrow(step),
            _ => {
                table.missing(
                    "step",
                    "add `step = 0.1`, the step of the bandwidth allocation".into(),
                );
                return None;
            }
        },
        None => Grain::Time,
    };
    let units_of = |field: Field<'_>| field.number(0.001..=4096.0);
    let bandwidths = GbPerSec(f64::MIN_POSITIVE)..=GbPerSec(1e5);
    Some(Knee {
        writes: writes?.number(0.0..=1.0)?,
        rest: time(&rest?, Nanos(1.0), MILLISECOND)?,
        residency: time(&residency?, Nanos(1.0), MILLISECOND)?,
        gives: gives?.quantity_within("a bandwidth such as \"24.1 GB/s\"", bandwidths)?,
        units: units_of(units?)?,
        much: match much {
            Some(field) => Some(units_of(field)?),
            None => None,
        },
        grain,
    })
}

/// Reads the table `[tier]`: the kernel's own tiering, as `weir tier run` sets it.
fn tier(table: &Table<'_>) -> TierConfig {
    let mut config = TierConfig::default();
    let [controller, demotion, balancing, limit] =
        ["controller", "demotion", "balancing", "promote_limit"].map(|key| table.get(key));
    let [weights, demote, pressure] =
        ["weights", "demote", "pressure_pct"].map(|key| table.get(key));
    let [low, high] = ["alto_low", "alto_high"].map(|key| table.get(key));
    table.done(WHAT);
    let controller = controller.map(|f| (f.word(&TierController::ALL, TierController::name), f));
    if let Some((Some(TierController::Alto), field)) = &controller
        && limit.is_none()
    {
        let why = "`alto` gives parts of a limit of promotion, and none is configured";
        let advice = "add `promote_limit = \"0.1 GB/s\"`";
        field.report(why, Some(advice.into()));
    }
    set(
        &mut config.controller,
        controller.and_then(|(word, _)| word),
    );
    let on = |f: Field<'_>| Some(f.word(&["on", "off"], |word| word)? == "on");
    config.settings = KernelTiering {
        demotion: demotion.and_then(on),
        balancing: balancing.and_then(|f| f.word(&Balancing::ALL, Balancing::name)),
        promote_limit: limit.and_then(|f| rate(&f)),
    };
    config.weights = weights.map(|f| read_weights(&f)).unwrap_or_default();
    if let Some(field) = demote {
        config.demote = (field.tables(MOST_GROUPS).iter().flatten())
            .filter_map(demoted_group)
            .collect();
        if config.settings.demotion != Some(true) {
            let why = "without demotion the kernel would write these pages to swap or drop them";
            field.report(why, Some("add `demotion = \"on\"`".into()));
        }
    }
    let pressure = pressure.and_then(|f| f.number(0.0..=100.0));
    set(&mut config.pressure, pressure);
    let cycles = |f: &Field<'_>| f.number(1.0..=1e5).map(Cycles);
    set(&mut config.alto.low, low.as_ref().and_then(cycles));
    set(&mut config.alto.high, high.as_ref().and_then(cycles));
    if config.alto.low >= config.alto.high
        && let Some(field) = low.or(high)
    {
        let Alto { low, high } = config.alto;
        let (low, high) = (low.get(), high.get());
        let why = format!("`alto_low` ({low}) must be less than `alto_high` ({high})");
        field.report(why, None);
    }
    config
}

fn rate(field: &Field<'_>) -> Option<GbPerSec> {
    let rates = GbPerSec(f64::MIN_POSITIVE)..=GbPerSec(1e4);
    field.quantity_within("a rate such as \"0.1 GB/s\"", rates)
}

fn read_weights(field: &Field<'_>) -> Vec<(TierName, u32)> {
    let Some(table) = field.table() else {
        return Vec::new();
    };
    let one = |(name, field): (&str, Field<'_>)| {
        let weight = u32::try_from(field.whole(1..=255)?).ok()?;
        Some((TierName::named(name), weight))
    };
    table.fields().into_iter().filter_map(one).collect()
}

fn demoted_group(table: &Table<'_>) -> Option<(Scope, GbPerSec)> {
    let scope = table.need("scope", "\"cgroup:/batch.slice\"");
    let of = table.need("rate", "\"0.05 GB/s\"");
    table.done("a group that is demoted");
    let scope = scope?.read("a scope", Scope::from_str)?;
    Some((scope, rate(&of?)?))
}

fn log(table: &Table<'_>, config: &mut Config) {
    let path = path(table, "path");
    let most = table.get("most").and_then(|field| {
        let sizes = Bytes::kib(64)..=Bytes::gib(16);
        field.quantity_within("a size such as \"16 MiB\"", sizes)
    });
    let keep = table.get("keep").and_then(|field| field.whole(0..=100));
    table.done(WHAT);
    config.log = path.map(LogConfig::at).map(|mut log| {
        set(&mut log.most, most);
        set(&mut log.keep, keep.map(|n| n as u32));
        log
    });
}

fn metrics(table: &Table<'_>) -> Option<SocketAddr> {
    let anywhere = table.get("anywhere").and_then(|field| field.flag());
    let listen = table.get("listen");
    table.done(WHAT);
    let listen = listen?;
    let form = "an address and a port such as \"127.0.0.1:9464\"";
    let address = listen.read(form, SocketAddr::from_str)?;
    if address.ip().is_loopback() || anywhere == Some(true) {
        return Some(address);
    }
    listen.report(
        "other machines can reach this address",
        Some("add `anywhere = true` to allow that".into()),
    );
    None
}
