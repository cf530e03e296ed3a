//! `weir pool`: slices of a pool of memory for VMs, one owner at a time.
//!
//! | file | content |
//! |---|---|
//! | `options` | arguments |
//! | `guest` | the arguments that give a guest a node without processors |
//! | `table` | the pool and its table on disk |
//! | `manager` | the order of steps, and their repair |
//! | `moving` | the steps of one slice |
//! | `steps` | what is reported of them |
//! | `dimm` | a slice in a QEMU |
//! | `world` | QEMUs and processes; tests have a world of their own |
//! | `view` | documents and tables |

mod dimm;
mod guest;
mod manager;
mod moving;
mod options;
mod steps;
mod table;
mod view;
mod world;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use weir_linux::vm::{self, Identity};
use weir_model::number::count;
use weir_plan::pool::owners::Vm;

use crate::context::Context;
use crate::counting::on_this_host;
use crate::failure::{Failure, Result};
use crate::output::print;
use crate::session::{self, say};
use guest::ZNUMA;
use manager::Manager;
use options::{CreateArgs, Named, Patience, StartArgs, StatusArgs, What};
use steps::{Reached, Which};
use table::{Pool, table_of};
use world::{Host, World};

pub use options::Args;
pub use view::PoolDocument;

/// Does what is asked of a pool.
///
/// # Errors
/// A request is wrong, a VM refuses or does not answer, or a slice is not given back.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    on_this_host(context, "weir pool")?;
    match &args.what {
        What::Create(args) => create(args, context),
        What::Start(args) => start(args, context),
        What::Add(args) => {
            check_count(args.slices)?;
            work(&args.named, &args.patience, context, |manager| {
                let vm = manager.vm_at(&args.vm, args.node)?;
                manager.add(&vm, args.slices)
            })
        }
        What::Release(args) => {
            check_count(args.slices)?;
            let which = args.slice.map_or(Which::Count(args.slices), Which::Slice);
            work(&args.named, &args.patience, context, |manager| {
                let vm = manager.vm_at(&args.vm, None)?;
                manager.release(&vm, which)
            })
        }
        What::Recover(args) => work(&args.named, &args.patience, context, recovered),
        What::Status(args) => status(args, context),
        What::Arguments(args) => {
            if args.shape.is_below_a_slice(args.slice)? {
                say(&format!(
                    "weir: warning: what is untouched is less than a slice of {}, so that the pool gives the guest nothing; \
                     --slice makes slices smaller",
                    args.slice
                ));
            }
            let words = args.shape.without_manager(args.slice, args.pool_node)?;
            // A line that a shell splits, whatever the format.
            print(&format!("{}\n", words.join(" ")))
        }
    }
}

fn check_count(slices: usize) -> Result<()> {
    match slices {
        0 => Err(Failure::request("--slices is 0; name at least one")),
        _ => Ok(()),
    }
}

/// Where the table is. A device's folder is made anew at each start of the host.
fn table(named: &Named) -> Result<PathBuf> {
    if named.table.is_none()
        && named.file.starts_with("/dev")
        && !named.file.starts_with("/dev/shm")
    {
        return Err(Failure::request(format!(
            "the table of a device must not be next to it, since /dev is made anew at each start; name one, such as \
             --table /var/lib/weir/{}.slices",
            named.file.file_name().unwrap_or_default().display()
        )));
    }
    Ok(table_of(&named.file, named.table.as_deref()))
}

fn create(args: &CreateArgs, context: &Context) -> Result<()> {
    let table = table(&args.named)?;
    let file = &args.named.file;
    let pool = match (args.scrub, args.size) {
        (true, size) => Pool::over(file, &table, size, args.slice)?,
        (false, Some(size)) => Pool::create(file, &table, size, args.slice)?,
        (false, None) => return Err(Failure::request("--size is missing")),
    };
    let mut host = Host {
        limit: Duration::from_secs(10),
    };
    finish(pool, &mut host, context, recovered)
}

/// Opens a pool, repairs it, and does something with it.
fn work(
    named: &Named,
    patience: &Patience,
    context: &Context,
    what: impl FnOnce(&mut Manager) -> Result<()>,
) -> Result<()> {
    let pool = Pool::open(&named.file, &table(named)?)?;
    let mut host = Host {
        limit: limit(patience)?,
    };
    finish(pool, &mut host, context, what)
}

fn limit(patience: &Patience) -> Result<Duration> {
    let seconds = patience.limit.get() / 1e9;
    match (0.001..=86_400.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(Failure::request(format!(
            "--limit is {seconds} s; it must be from 1 ms to a day"
        ))),
    }
}

/// Does something with a pool after its repair, and shows what became of it.
fn finish(
    pool: Pool,
    host: &mut Host,
    context: &Context,
    what: impl FnOnce(&mut Manager) -> Result<()>,
) -> Result<()> {
    let limit = host.limit;
    let mut reached = |slice, step| goes_on(context, slice, step);
    let mut manager = Manager::of(pool, host, limit, &mut reached);
    let done = manager.repair().and_then(|()| what(&mut manager));
    for text in &manager.left {
        say(&format!("weir: warning: {text}"));
    }
    let (pool, did) = (manager.pool, manager.did);
    // A request that was wrong from the beginning has no result.
    if done.is_ok() || !did.is_empty() {
        view::print_pool(context, &pool, did, &|vm| host.runs(vm))?;
    }
    done
}

/// Ends the work between two steps if the user wants that.
fn goes_on(context: &Context, slice: usize, step: Reached) -> Result<()> {
    context.stop.waits_for(format!("slice {slice}"));
    if !context.stop.requested() {
        return Ok(());
    }
    Err(Failure::Partial(format!(
        "stopped after a step of slice {slice} ({step:?}); `weir pool recover` finishes it"
    )))
}

/// Whether a repair has left nothing.
fn recovered(manager: &mut Manager) -> Result<()> {
    let under_way = manager
        .pool
        .owners()
        .which(|slice| slice.stage.is_under_way());
    match under_way.len() {
        0 => Ok(()),
        n => Err(Failure::work(format!(
            "steps of {} are unfinished; the warnings say why",
            count(n as u64, "slice")
        ))),
    }
}

fn status(args: &StatusArgs, context: &Context) -> Result<()> {
    let pool = Pool::read(&args.named.file, &table(&args.named)?)?;
    let host = Host {
        limit: Duration::ZERO,
    };
    view::print_pool(context, &pool, Vec::new(), &|vm| host.runs(vm))
}

/// Permits slices to this process, and has it become a QEMU.
fn start(args: &StartArgs, context: &Context) -> Result<()> {
    if session::is_active() {
        return Err(Failure::request(
            "this process would become the guest's QEMU; start guests from a shell, by `weir pool start`",
        ));
    }
    let pool = Pool::open(&args.named.file, &table(&args.named)?)?;
    let division = args.shape.divide(pool.slice)?;
    let failed = |error| Failure::work(format!("cannot tell which process this is: {error}"));
    let own = Identity::own().map_err(failed)?;
    let socket = std::path::absolute(&args.vm)
        .map_err(|error| Failure::request(format!("{}: {error}", args.vm.display())))?;
    let vm = Vm {
        socket: socket.display().to_string(),
        pid: own.pid,
        started: own.started,
        node: ZNUMA,
    };
    let mut host = Host {
        limit: limit(&args.patience)?,
    };
    let limit = host.limit;
    let mut reached = |slice, step| goes_on(context, slice, step);
    let mut manager = Manager::of(pool, &mut host, limit, &mut reached);
    manager.repair()?;
    for text in &manager.left {
        say(&format!("weir: warning: {text}"));
    }
    let slices = match division.slices {
        0 => Vec::new(),
        count => manager.take(&vm, count)?,
    };
    let mut words = args.program.clone();
    let slots = division.slices + args.shape.room;
    words.extend(
        args.shape
            .arguments(&division, None, slots)
            .into_iter()
            .map(OsString::from),
    );
    for &slice in &slices {
        let (file, range) = (manager.pool.file.path(), manager.pool.range(slice));
        let module = guest::module_at_start(slice, file, range.start, manager.pool.slice);
        words.extend(module.map(OsString::from));
    }
    let socket = socket.display().to_string().replace(',', ",,");
    words.push("-qmp".into());
    words.push(format!("unix:{socket},server=on,wait=off").into());
    let error = vm::become_program(&words);
    // This process is no VM after all.
    manager.repair()?;
    Err(Failure::request(format!(
        "cannot start {}: {error}",
        args.program
            .first()
            .map_or_else(Default::default, |p| p.display().to_string())
    )))
}
