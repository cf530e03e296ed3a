//! Which machine an experiment meets: the only place that knows both kinds.

use std::path::Path;

use anyhow::anyhow;
use weir_lab::lab::NoMachine;
use weir_linux::LinuxTestbed;
use weir_linux::memory::Pages;
use weir_linux::steer::Restored;
use weir_linux::storage::Wish;
use weir_model::capability::{Capability, Feature};
use weir_model::diagnostic::{closest, did_you_mean, quote};
use weir_model::machine::{Identity, MachineKind, Testbed};
use weir_model::platform::{Definition, Library, Mistakes, Platform};
use weir_model::toml::{self, MOST_BYTES};
use weir_model::topology::{TierName, Topology};
use weir_sim::{Sampling, SimTestbed};

use crate::failure::{Failure, Result};
use crate::files;
use crate::session::say;

/// A machine that was chosen, and what it says of itself.
pub struct Chosen {
    /// What it was chosen by: `host`, or a platform expression with the paths in it.
    pub named: String,
    /// Where its machines come from.
    pub testbed: Box<dyn Testbed>,
    /// Which it is.
    pub identity: Identity,
    /// What it is made of.
    pub topology: Topology,
    /// What it offers and lacks.
    pub capabilities: Vec<Capability>,
    /// Why requests that write to its storage are refused, if they are.
    pub only_reads: Option<String>,
}

impl Chosen {
    /// No machine, for a study that opens models of its own.
    pub fn of_models() -> Self {
        Self {
            named: "models".into(),
            testbed: Box::new(NoMachine),
            identity: Identity {
                kind: MachineKind::Sim,
                ..Identity::default()
            },
            topology: Topology::default(),
            capabilities: Vec::new(),
            only_reads: None,
        }
    }
}

/// A platform expression without spaces around its parts: they name the same machine.
pub fn without_spaces(on: &str) -> String {
    let parts: Vec<&str> = on.split('+').map(str::trim).collect();
    parts.join("+")
}

/// Tells the user what was restored of a run that was killed, and what is wrong with it.
pub fn say_restored(restored: &Restored) {
    for path in &restored.put_back {
        say(&format!(
            "weir: restored what an earlier run had left: {path}"
        ));
    }
    for message in restored.remarks() {
        say(&format!("weir: warning: {message}"));
    }
}

/// The suffix of a model's name if its long windows are sampled.
const SAMPLED: &str = " sampled";
/// Before the error of the figures that is asked of a model, at the end of its name.
const WITHIN: &str = " within ";

/// The name that means the machine Weir runs on.
pub const HOST: &str = "host";

/// Names of that machine with the pages that working sets are made of; without, 2 MiB on demand.
const HOST_PAGES: [(&str, Pages); 4] = [
    (HOST, Pages::Transparent),
    ("host@4k", Pages::Base),
    ("host@2m", Pages::Transparent),
    ("host@reserved", Pages::Reserved),
];

/// The machine of this name: `host`, alone or with a size of pages, or a platform expression.
///
/// # Errors
/// The expression names no platform, a file it names has mistakes, or this host cannot be read.
pub fn choose(on: &str) -> Result<Chosen> {
    choose_with(on, None)
}

/// The machine that a file names at this place: what is wrong is there, and no `--on`.
///
/// # Errors
/// As [`choose`].
pub fn choose_by(on: &str, place: &str) -> Result<Chosen> {
    let is_of_host = is_real(on) || refuse_unknown_host(on).is_err();
    choose(on).map_err(|failure| match compose_named(on, place) {
        Err(named) if !is_of_host => named,
        _ => failure.of(place),
    })
}

/// The machine of this name, with the storage that a user names where it is this host.
///
/// # Errors
/// As [`choose`]; or storage is named for another machine, is not there, or takes no requests.
pub fn choose_with(on: &str, storage: Option<Wish>) -> Result<Chosen> {
    let on = &without_spaces(on);
    if let Some(on) = on.strip_suffix(SAMPLED) {
        let (on, error) = split_error(on);
        return choose_sampled(on, error);
    }
    if let (on, Some(error)) = split_error(on) {
        return choose_model(on, Some(error), false);
    }
    if weir_linux::recording::is_recording(on).is_some() {
        return Err(Failure::request(format!(
            "{on} is a recorded machine: it can be looked at (weir topo, weir doctor), but nothing runs on it"
        )));
    }
    let pages = HOST_PAGES.iter().find(|(name, _)| *name == on);
    refuse_unknown_host(on)?;
    let mut only_reads = None;
    let testbed: Box<dyn Testbed> = if let Some(&(_, pages)) = pages {
        let options = weir_linux::Options {
            pages,
            storage,
            journal: Some(weir_steer::config::Config::default().journal),
            run_journal: Some(weir_linux::steer::RUN_JOURNAL.into()),
            ..weir_linux::Options::default()
        };
        let host = LinuxTestbed::new(weir_linux::Root::live(), options)?;
        say_restored(host.restored());
        only_reads = host.only_reads();
        Box::new(host)
    } else if storage.is_some() {
        return Err(Failure::request(format!(
            "--storage is of this machine; {on} is a model and has the devices of its platform"
        )));
    } else {
        simulate(on)?
    };
    let machine = testbed.open(0)?;
    Ok(Chosen {
        named: on.to_owned(),
        identity: machine.identity(),
        topology: machine.topology().clone(),
        capabilities: machine.capabilities().to_vec(),
        testbed,
        only_reads,
    })
}

/// What is said of a tier that this machine does not have: where it lacks what tiers of such a name
/// are made of, that, and else that the request was wrong.
pub fn no_tier(name: &TierName, message: String, capabilities: &[Capability]) -> Failure {
    let feature = match name.as_str() {
        name if name.starts_with("cxl") => Some(Feature::CxlMemory),
        name if name.starts_with("node") || name == "remote" => Some(Feature::MultipleNodes),
        _ => None,
    };
    let mut missing = capabilities.iter().filter(|c| !c.present);
    match missing.find(|c| Some(c.feature) == feature) {
        Some(Capability {
            feature, detail, ..
        }) => Failure::Missing(anyhow!("{message}; {feature} is missing: {detail}")),
        None => Failure::Request(anyhow!(message)),
    }
}

/// The model of a platform.
///
/// # Errors
/// As [`compose`], or the simulator cannot build the platform.
pub fn simulate(on: &str) -> Result<Box<dyn Testbed>> {
    let testbed = SimTestbed::new(&compose(on)?).map_err(|error| {
        Failure::Request(anyhow!(error).context(format!("cannot build `{on}`")))
    })?;
    Ok(Box::new(testbed))
}

/// The model of a platform for long experiments, whose windows are sampled; with an error, until half of each 95 %
/// interval is this share of its figure.
///
/// # Errors
/// As [`simulate`], or this host was named.
pub fn choose_sampled(on: &str, error: Option<f64>) -> Result<Chosen> {
    choose_model(on, error, true)
}

/// The machine of this name. If it is a model, with the error that is asked of its figures.
///
/// # Errors
/// As [`choose`], or an error is asked of a real machine.
pub fn choose_within(on: &str, error: Option<f64>) -> Result<Chosen> {
    match error {
        Some(_) => choose_model(on, error, false),
        None => choose(on),
    }
}

/// Whether a name is that of a machine which is measured and not simulated.
pub fn is_real(on: &str) -> bool {
    is_host(on) || weir_linux::recording::is_recording(on).is_some()
}

/// Whether a name is one of those of this machine.
pub fn is_host(on: &str) -> bool {
    HOST_PAGES.iter().any(|(name, _)| *name == on)
}

/// Refuses a name that begins with `host@` and is not a name of this machine.
///
/// # Errors
/// It is such a name.
pub fn refuse_unknown_host(on: &str) -> Result<()> {
    if !on.starts_with("host@") || is_host(on) {
        return Ok(());
    }
    let names = HOST_PAGES.map(|(name, _)| name).join(", ");
    Err(Failure::request(format!(
        "{on} is not a name of this host; its names are {names}"
    )))
}

/// The pages of working sets on this machine, where a name is one of its names.
pub fn host_pages(on: &str) -> Option<Pages> {
    let named = HOST_PAGES.iter().find(|(name, _)| *name == on);
    named.map(|(_, pages)| *pages)
}

/// A name without the error at its end, and that error.
fn split_error(on: &str) -> (&str, Option<f64>) {
    let parts = on.split_once(WITHIN);
    let error = parts.and_then(|(on, share)| Some((on, share.parse().ok()?)));
    error.map_or((on, None), |(on, error)| (on, Some(error)))
}

fn choose_model(on: &str, error: Option<f64>, sampled: bool) -> Result<Chosen> {
    let platform = compose(on)?;
    let testbed = SimTestbed::new(&platform).map_err(|error| {
        Failure::Request(anyhow!(error).context(format!("cannot build `{on}`")))
    })?;
    let testbed = testbed.to_error(error);
    let testbed = match sampled {
        true => testbed.sampled(Sampling::of(&platform)),
        false => testbed,
    };
    let machine = testbed.open(0)?;
    let within = error.map(|error| format!("{WITHIN}{error}"));
    let suffix = if sampled { SAMPLED } else { "" };
    Ok(Chosen {
        named: format!("{on}{}{suffix}", within.unwrap_or_default()),
        identity: machine.identity(),
        topology: machine.topology().clone(),
        capabilities: machine.capabilities().to_vec(),
        testbed: Box::new(testbed),
        only_reads: None,
    })
}

/// A value of a host or device, as its file would have it, in place of the usual one.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The host or device.
    pub part: &'a str,
    /// The dotted key.
    pub key: &'a str,
    /// The value, as it would be written.
    pub value: &'a str,
}

/// The model of a platform that comes with Weir, with some values changed.
///
/// # Errors
/// The expression names no platform, a value is none for its key or contradicts others, or the
/// simulator cannot build the platform.
pub fn simulate_changed(on: &str, changes: &[Change<'_>]) -> Result<Box<dyn Testbed>> {
    let mut library = Library::builtin();
    let plain = library
        .change(on)
        .map_err(|error| Failure::Request(anyhow!(error)))?;
    for Change { part, key, value } in changes {
        library.vary(part, key, value).map_err(|error| {
            Failure::Request(anyhow!(error).context(format!("{part}: {key} = {value}")))
        })?;
    }
    let platform = library
        .compose(&plain)
        .map_err(|error| Failure::Request(error.into()))?;
    let testbed = SimTestbed::new(&platform).map_err(|error| {
        Failure::Request(anyhow!(error).context(format!("cannot build `{on}`")))
    })?;
    Ok(Box::new(testbed))
}

/// A platform from an expression whose parts are names or paths of TOML files, some with changes behind a comma.
///
/// # Errors
/// A part is unknown, or its file cannot be read or has mistakes.
pub fn compose(on: &str) -> Result<Platform> {
    Ok(compose_named(on, "--on")?.1)
}

/// The same, with the library that has its files, where something else than `--on` names the machine; `by` is what.
///
/// # Errors
/// As [`compose`].
pub fn compose_named(on: &str, by: &str) -> Result<(Library, Platform)> {
    let by = by.to_owned();
    let on = without_spaces(on);
    let mut library = Library::builtin();
    let mut terms = Vec::new();
    for whole in on.split('+') {
        let (term, changes) = whole.split_at(whole.find(',').unwrap_or(whole.len()));
        let (count, rest) = match term.split_once('x') {
            Some((n, rest)) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => {
                (&term[..=n.len()], rest)
            }
            _ => ("", term),
        };
        let (part, place) = match rest.rfind('@') {
            Some(at) if !rest[at..].contains('/') => rest.split_at(at),
            _ => (rest, ""),
        };
        if is_path(part) {
            let text = read_platform_file(Path::new(part)).map_err(|failure| failure.of(&by))?;
            let name = add(&mut library, part, &text)?;
            terms.push(format!("{count}{name}{place}{changes}"));
        } else if part != "none"
            && library.get(part).is_none()
            && Path::new(&format!("{part}.toml")).is_file()
        {
            return Err(Failure::request(format!(
                "{by}: no platform or device is called `{part}`; the file of that name here is `./{part}.toml`"
            )));
        } else {
            terms.push(whole.to_owned());
        }
    }
    let named = terms.join("+");
    let plain = library.change(&named);
    let plain = plain.map_err(|error| Failure::Request(anyhow!(error).context(by.clone())))?;
    let mut platform = library
        .compose(&plain)
        .map_err(|error| Failure::Request(anyhow!(error).context(by)))?;
    // Figures of a changed machine must not pass for those of the machine.
    platform.name = named.trim().to_owned();
    Ok((library, platform))
}

/// The host or device that a single name or the path of a TOML file stands for; `None` if it is
/// neither.
///
/// # Errors
/// The file cannot be read or has mistakes.
pub fn definition(part: &str) -> Result<Option<Definition>> {
    let library = Library::builtin();
    // A path with what only an expression has, such as `emr2s+my-device.toml`.
    if !is_path(part) || part.contains('+') || part.contains('@') {
        return Ok(library.get(part).cloned());
    }
    let text = read_platform_file(Path::new(part))?;
    let definition = library.check(part, &text);
    Ok(Some(definition.map_err(|mistakes| {
        Failure::request(mistakes.to_string())
    })?))
}

fn is_path(part: &str) -> bool {
    part.ends_with(".toml") || part.contains('/')
}

fn add(library: &mut Library, path: &str, text: &str) -> Result<String> {
    let read = |library: &mut Library| {
        let definition = library.check(path, text)?;
        library.add(path, text)?;
        Ok::<_, Mistakes>(definition.name().to_owned())
    };
    let name = read(library).map_err(|mistakes| Failure::request(mistakes.to_string()))?;
    // The devices that a host comes with may be files in the same folder, as `weir platforms fit` writes them.
    let Some(Definition::Host(host)) = library.get(&name) else {
        return Ok(name);
    };
    for device in host.default_devices.clone() {
        let beside = Path::new(path).with_file_name(format!("{device}.toml"));
        if library.get(&device).is_none() && beside.is_file() {
            let text = read_platform_file(&beside)?;
            let file = beside.display().to_string();
            let added = library.add(&file, &text).map(drop);
            added.map_err(|mistakes| Failure::request(mistakes.to_string()))?;
        }
    }
    Ok(name)
}

/// The name of what a platform file describes, if all devices that it names are known as well.
///
/// # Errors
/// The file has mistakes, or one of the devices beside it.
pub fn check_file(path: &str, text: &str) -> Result<String> {
    let mut library = Library::builtin();
    let name = add(&mut library, path, text)?;
    let unknown = |name: &str| {
        let device = library.get(name);
        !matches!(device, Some(Definition::Device(_) | Definition::Storage(_)))
    };
    let devices = (library.list().into_iter())
        .filter(|own| !matches!(own, Definition::Host(_)))
        .map(Definition::name);
    let devices: Vec<&str> = devices.collect();
    let named = toml::read(path, text, "a platform file", |root| {
        let own = root.get("default_devices");
        let own = own.map_or(Some(Vec::new()), |field| field.list("device names", 64))?;
        for field in own {
            let device = field.text()?;
            if unknown(device) {
                let message = format!("`{}` is no device that is known", quote(device));
                let near = did_you_mean(&closest(device, devices.iter().copied()));
                let help = near.unwrap_or_else(|| {
                    format!("`weir platforms list` has their names; a file beside this one would be {device}.toml")
                });
                field.report(message, Some(help));
            }
        }
        Some(())
    });
    named.map_err(|mistakes| Failure::request(mistakes.to_string()))?;
    Ok(name)
}

/// The text of a platform file; a file that is far too large is not read to its end.
///
/// # Errors
/// It cannot be read, is too large, or is no text.
pub fn read_platform_file(path: &Path) -> Result<String> {
    files::text(path, "platform file", MOST_BYTES)
}
