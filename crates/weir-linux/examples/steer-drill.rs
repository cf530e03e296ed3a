//! Limits tenants of this host by every actuator that it has, and removes the limits; it may be killed on the
//! way. Or moves the pages of a stream. The guests of `tests/vm` are steered with it.
//!
//! ```text
//! steer-drill JOURNAL restore             restore what the journal says
//! steer-drill JOURNAL hold SCOPE...       limit, print what was written, wait for a line, release
//! steer-drill JOURNAL kill N SCOPE...     the same without waiting, killed at the Nth moment
//! steer-drill JOURNAL move FROM TO        move the pages of a stream to a tier, wait for a line, place them back
//! ```
//!
//! Exit codes: 0 done; 1 something could not be restored or observed; 2 the request was wrong.

use std::path::Path;
use std::process::ExitCode;

use weir_linux::steer::{
    Actuator, Extent, Host, HostConfig, Moment, SystemSettings, TenantScope, restore,
};
use weir_linux::{LinuxTestbed, Options, Root};
use weir_model::access::{Op, Pattern};
use weir_model::action::Action;
use weir_model::events::EventLibrary;
use weir_model::machine::{Machine, MachineError, Testbed};
use weir_model::region::Pages;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Nanos};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match &words[..] {
        [journal, "restore"] => put_back(Path::new(journal)),
        [journal, "hold", scopes @ ..] if !scopes.is_empty() => {
            steer(Path::new(journal), scopes, None)
        }
        [journal, "kill", after, scopes @ ..] if !scopes.is_empty() => match after.parse() {
            Ok(after) => steer(Path::new(journal), scopes, Some(after)),
            Err(_) => Err((2, format!("`{after}` is no number"))),
        },
        [_, "move", from, to] => {
            let tiers = [from, to].map(|name| TierName::named(*name));
            move_pages(&tiers).map_err(|why| (1, why.to_string()))
        }
        _ => Err((2, "see the head of steer-drill.rs".to_owned())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => {
            eprintln!("{why}");
            ExitCode::from(code)
        }
    }
}

type Done = Result<(), (u8, String)>;

fn put_back(journal: &Path) -> Done {
    let restored =
        restore(&Root::live(), journal, Extent::Host).map_err(|error| (1, error.to_string()))?;
    for path in &restored.put_back {
        println!("put back {path}");
    }
    for note in &restored.notes {
        println!("note {note}");
    }
    let not: Vec<String> = restored.not.iter().map(ToString::to_string).collect();
    if not.is_empty() {
        return Ok(());
    }
    Err((1, not.join("\n")))
}

fn steer(journal: &Path, scopes: &[&str], after: Option<usize>) -> Done {
    let mut moments = 0;
    let watch = move |_: Moment| {
        if Some(moments) == after {
            // No destructor runs and nothing is flushed: the process ends here.
            let own = std::process::id().to_string();
            let _ = std::process::Command::new("kill")
                .args(["-KILL", &own])
                .status();
        }
        moments += 1;
    };
    let root = Root::live();
    let config = config(scopes).map_err(|why| (2, why))?;
    let events = EventLibrary::builtin();
    let mut host = Host::open_watched(&root, config, &events, journal, Box::new(watch))
        .map_err(|error| (2, error.to_string()))?;
    for tenant in host.tenants() {
        for (actuator, allowed) in tenant.actuator() {
            match allowed {
                Ok(()) => println!("{} by {actuator}", tenant.scope()),
                Err(why) => println!("{} not by {actuator}: {why}", tenant.scope()),
            }
        }
    }
    hold(&mut host);
    let mut settings = SystemSettings::sharing(&root, host.releaser());
    match settings.as_mut().map(|own| own.set_weights(&[(0, 7)])) {
        Some(Ok(weights)) => println!("applied weights {weights:?}"),
        refused => println!("refused weights: {refused:?}"),
    }
    for seen in [host.observe(Nanos(0.0)), host.observe(Nanos(500e6))] {
        for tenant in seen.tenants {
            println!("seen {tenant:?}");
        }
    }
    if after.is_none() {
        println!("held");
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
    }
    let not = host.release();
    if not.is_empty() {
        return Ok(());
    }
    let not: Vec<String> = not.iter().map(ToString::to_string).collect();
    Err((1, not.join("\n")))
}

/// Moves the pages of a stream from the first tier to the second, and places them back.
fn move_pages([from, to]: &[TierName; 2]) -> Result<(), MachineError> {
    let mut machine = LinuxTestbed::new(Root::live(), Options::default())?.open(1)?;
    let size = Bytes::mib(4);
    let tenant = Tenant::on_first_cores(Op::Ld, Pattern::Sequential, from, 1, size);
    let name = tenant.name.clone();
    machine.start(&[tenant])?;
    let away = Action::MovePages {
        tenant: name.clone(),
        pages: Pages::All,
        from: from.clone(),
        to: to.clone(),
        limit: Some(GbPerSec(0.05)),
    };
    arrive(machine.as_mut(), &away, to)?;
    println!("held");
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    let back = Action::Place {
        tenant: name,
        pages: Pages::All,
        placement: Placement::Bind(from.clone()),
        limit: None,
    };
    arrive(machine.as_mut(), &back, from)?;
    machine.stop().map(drop)
}

/// Acts, and observes windows until all pages are on a tier.
fn arrive(machine: &mut dyn Machine, action: &Action, to: &TierName) -> Result<(), MachineError> {
    machine.act(action)?;
    let mut moved = 0;
    for _ in 0..400 {
        let seen = machine.observe(Nanos(50e6))?;
        let regions = || seen.tenants.iter().flat_map(|own| &own.regions);
        let tiers = regions().flat_map(|region| &region.tiers);
        moved += tiers.map(|tier| tier.moved_in.get()).sum::<u64>();
        let all: u64 = regions().map(|region| region.total().get()).sum();
        let there: u64 = regions().map(|region| region.resident(to).get()).sum();
        if all > 0 && there == all {
            println!("{there} of {all} bytes are on {to}, {moved} moved");
            return Ok(());
        }
    }
    Err(MachineError::Request(format!(
        "the pages do not reach {to}: {moved} bytes moved"
    )))
}

/// Scopes that begin with `=` are protected and only observed.
fn config(scopes: &[&str]) -> Result<HostConfig, String> {
    let tenant = |text: &&str| {
        let scope = text.strip_prefix('=').unwrap_or(text);
        Ok(TenantScope {
            name: (*text).to_owned(),
            scope: scope.parse().map_err(|why| format!("{why}"))?,
            restrain: scope == *text,
        })
    };
    Ok(HostConfig {
        tenants: scopes.iter().map(tenant).collect::<Result<_, String>>()?,
        actuators: Actuator::ALL.to_vec(),
        own_groups: true,
        dwell: Nanos(0.0),
        look_at_pages: 1,
        ..HostConfig::default()
    })
}

/// Every actuator, for every tenant that may be limited; one limit is removed and set again.
fn hold(host: &mut Host) {
    let tenants = host.tenants().iter().filter(|t| t.is_restrained());
    let names: Vec<String> = tenants.map(|t| t.name().to_owned()).collect();
    for name in names {
        let tenant = || name.clone();
        let period = Nanos(20e6);
        let time = |share| Action::ProcessorTime {
            tenant: tenant(),
            share,
            period,
        };
        let cores = |cores| Action::Cores {
            tenant: tenant(),
            cores,
        };
        let bandwidth = Action::Bandwidth {
            tenant: tenant(),
            percent: 30,
        };
        for action in [
            cores(Some(1)),
            time(0.6),
            cores(None),
            cores(Some(1)),
            time(0.5),
            bandwidth,
        ] {
            match host.act(&action) {
                Ok(applied) => println!("applied {:?}", applied.applied),
                Err(why) => println!("refused {action:?}: {why}"),
            }
        }
    }
}
