//! Reading a workload file.

use std::collections::BTreeSet;

use super::schema::{FILE_KEYS, PHASE_KEYS, REGION_KEYS, REQUEST_KEYS};
use super::{Application, Order, Phase, Region, Requests, Spread, Within, Workload, usual_slice};
use crate::diagnostic::quote;
use crate::platform::{Key, Need, Scalar, name_of_file};
use crate::toml::{Table, known};
use crate::units::{Bytes, Nanos};

/// Bytes of an element where the file does not say it.
const ELEMENT: f64 = 8.0;
/// Phases and regions that a file may have.
const MOST_PHASES: usize = 64;
const MOST_REGIONS: usize = 32;

/// Reads a file. `None` where it does not describe a workload; then there is a mistake.
pub(super) fn read(file: &str, root: &Table<'_>) -> Option<Workload> {
    let name = match name_of_file(file) {
        Ok(name) => name.to_string(),
        Err(reason) => {
            let message = format!("the file's name cannot be a workload's name: {reason}");
            root.mistakes().report(0..0, None, message, None);
            return None;
        }
    };
    root.expect_kind("workload", "a workload")?;
    only(
        root,
        FILE_KEYS,
        &[
            "kind",
            "summary",
            "source",
            "assumed",
            "application",
            "variant",
            "requests",
            "phase",
        ],
    );
    let needed = |key| Some(root.need(key, "\"…\"")?.text()?.to_owned());
    let phases = list(root, "phase", MOST_PHASES, read_phase)?;
    let requests = (root.get("requests").and_then(|field| field.table()))
        .map(|table| read_requests(&table, &phases));
    let application = (root.get("application"))
        .and_then(|field| field.word(&Application::ALL, Application::name));
    Some(Workload {
        name,
        summary: needed("summary").unwrap_or_default(),
        source: needed("source").unwrap_or_default(),
        assumed: text(root, "assumed"),
        application,
        variant: variant(root, application),
        threads: number(root, FILE_KEYS, "threads").unwrap_or(1.0) as u32,
        core_ipc: number(root, FILE_KEYS, "core_ipc"),
        requests,
        phases,
    })
}

/// A variant that the application has.
fn variant(root: &Table<'_>, application: Option<Application>) -> Option<String> {
    let said = text(root, "variant")?;
    let known = application.map_or(&[][..], Application::variants);
    if known.contains(&said.as_str()) {
        return Some(said);
    }
    let message = format!("`{}` is no variant of its application", quote(&said));
    let hint = application.map(|of| format!("{of} has {}", known.join(", ")));
    root.wrong("variant", message, hint);
    None
}

fn read_requests(table: &Table<'_>, phases: &[Phase]) -> Requests {
    only(table, REQUEST_KEYS, &["unit", "spread"]);
    let number = |key| number(table, REQUEST_KEYS, key);
    let period = phases.iter().map(|phase| phase.instructions).sum();
    let spread = (table.get("spread")).and_then(|f| f.word(&Spread::ALL, Spread::name));
    let requests = Requests {
        unit: text(table, "unit").unwrap_or_else(|| "request".into()),
        instructions: number("instructions").map_or(period, |n| n as u64),
        spread: spread.unwrap_or_default(),
        per_second: number("per_second"),
        clients: number("clients").map(|n| n as u32),
        think: Nanos(number("think").unwrap_or(0.0)),
        locked: number("locked").unwrap_or(0.0),
        updates: number("updates"),
    };
    if requests.is_open() && requests.think.get() > 0.0 {
        let message = "requests that arrive at a rate do not wait until a thread has thought";
        table.wrong("think", message, Some("leave one of the two out".into()));
    }
    if requests.clients.is_some() && !requests.is_open() {
        let message = "clients send requests at a rate, and there is none";
        table.wrong("clients", message, Some("add `per_second`".into()));
    }
    requests
}

fn read_phase(table: &Table<'_>, index: usize) -> Option<Phase> {
    only(table, PHASE_KEYS, &["name", "regions"]);
    let number = |key| number(table, PHASE_KEYS, key);
    let (cpi, apki) = (number("cpi"), number("apki"));
    let phase = Phase {
        name: text(table, "name").unwrap_or_else(|| format!("phase {}", index + 1)),
        instructions: number("instructions").unwrap_or(1e9) as u64,
        slice: number("slice").unwrap_or_else(usual_slice),
        vector: number("vector").unwrap_or(0.0),
        mispredicts: number("mispredicts").unwrap_or(0.0),
        regions: list(table, "regions", MOST_REGIONS, read_region)?,
        cpi: cpi?,
        apki: apki?,
    };
    check_regions(table, &phase.regions)?;
    Some(phase)
}

fn read_region(table: &Table<'_>, index: usize) -> Option<Region> {
    only(
        table,
        REGION_KEYS,
        &["name", "object", "order", "within", "indexed_by"],
    );
    let number = |key| number(table, REGION_KEYS, key);
    let order = (table.need("order", "\"random\"")).and_then(|f| f.word(&Order::ALL, Order::name));
    let bytes = number("bytes");
    let element = number("element").unwrap_or(ELEMENT);
    let order = order?;
    let region = Region {
        name: text(table, "name").unwrap_or_else(|| format!("r{}", index + 1)),
        object: text(table, "object"),
        bytes: Bytes(bytes? as u64),
        order,
        share: number("share").unwrap_or(1.0),
        element: Bytes(element as u64),
        within: (table.get("within"))
            .and_then(|f| f.word(&Within::ALL, Within::name))
            .unwrap_or_default(),
        stride: Bytes(number("stride").unwrap_or(element) as u64),
        stores: number("stores").unwrap_or(0.0),
        modifies: number("modifies").unwrap_or(0.0),
        non_temporal: number("non_temporal").unwrap_or(0.0),
        streams: number("streams").unwrap_or(1.0) as u32,
        batch: number("batch").unwrap_or(1.0) as u32,
        skew: number("skew").unwrap_or(usual_skew(order)),
        dependent: match order {
            Order::Chase => 1.0,
            _ => number("dependent").unwrap_or(0.0),
        },
        indexed_by: text(table, "indexed_by"),
        mispredicted: number("mispredicted").unwrap_or(0.0),
    };
    check_region(table, &region);
    Some(region)
}

/// The skew of an order unless it is given.
pub(super) const fn usual_skew(order: Order) -> f64 {
    match order {
        Order::Apex => 1.0,
        _ => 0.99,
    }
}

fn only(table: &Table<'_>, keys: &'static [Key], more: &[&'static str]) {
    let names = keys.iter().map(|key| key.path);
    table.only("a workload", names.chain(more.iter().copied()));
}

fn text(table: &Table<'_>, key: &str) -> Option<String> {
    Some(table.get(key)?.text()?.to_owned())
}

/// A number of one of the keys; `None` where it is not there or is wrong.
fn number(table: &Table<'_>, keys: &'static [Key], name: &str) -> Option<f64> {
    let key = keys.iter().find(|key| key.path == name)?;
    let field = match key.need {
        Need::Required => table.need(name, &key.written_example()),
        _ => table.get(name),
    };
    match key.read(&field?)? {
        Scalar::Number(n) => Some(n),
        Scalar::Word(_) => None,
    }
}

/// Everything that can be read of a list of tables.
fn list<T>(
    table: &Table<'_>,
    key: &str,
    most: usize,
    read: fn(&Table<'_>, usize) -> Option<T>,
) -> Option<Vec<T>> {
    let tables = table.need(key, "[…]")?.tables(most)?;
    let all: Vec<T> = (tables.iter().enumerate())
        .filter_map(|(i, table)| read(table, i))
        .collect();
    (!all.is_empty()).then_some(all)
}

/// Checks the keys of one region against each other.
fn check_region(table: &Table<'_>, region: &Region) {
    if region.element.get() > region.bytes.get() {
        let message = format!("an element of {} is larger than its region", region.element);
        table.wrong("element", message, None);
    }
    if region.stride.get() < region.element.get() {
        let message = format!("a stride of {} is less than the element", region.stride);
        table.wrong("stride", message, None);
    }
    if region.order == Order::Apex && !(0.001..=1.0).contains(&region.skew) {
        let message = format!(
            "the alpha of an apex order is 0.001 to 1, not {}",
            region.skew
        );
        table.wrong("skew", message, None);
    }
    if region.stride != region.element && !region.order.is_run() {
        let message = format!("a {} order has no stride", region.order.name());
        table.wrong("stride", message, None);
    }
    if region.modifies > 0.0 && region.lines_per_element() > 1 {
        let message = format!(
            "an element of {} has several lines, and only elements of one are modified",
            region.element
        );
        table.wrong("modifies", message, None);
    }
    if region.order == Order::Chase && region.stores == 1.0 {
        let message = "a chase needs loads, but all its accesses are stores";
        table.wrong("stores", message, None);
    }
}

/// Checks the regions of a phase against each other.
fn check_regions(table: &Table<'_>, regions: &[Region]) -> Option<()> {
    let total: f64 = regions.iter().map(|r| r.share).sum();
    if total <= 0.0 {
        let message = "no region has a share of the accesses";
        table.wrong("regions", message, None);
        return None;
    }
    let names: Vec<&str> = regions.iter().map(|r| r.name.as_str()).collect();
    // Each mistake is reported at the region that has it: the one of its name that comes as often before.
    let tables = (table.get("regions")).and_then(|field| field.tables(MOST_REGIONS));
    let wrong = |i: usize, key: &str, message: String, help: Option<String>| {
        let before = names[..i].iter().filter(|&&name| name == names[i]).count();
        let mut same = (tables.iter().flatten())
            .filter(|region| text(region, "name").as_deref() == Some(names[i]));
        match same.nth(before) {
            Some(region) => region.wrong(key, message, help),
            None => table.wrong("regions", message, help),
        }
    };
    for (i, region) in regions.iter().enumerate() {
        if names[..i].contains(&names[i]) {
            let message = format!("two regions are called `{}`", quote(names[i]));
            wrong(i, "name", message, None);
        }
        if let Some(by) = &region.indexed_by
            && !names.contains(&by.as_str())
        {
            let message = format!(
                "`{}` is indexed by `{}`, which is not a region of its phase",
                quote(names[i]),
                quote(by)
            );
            let distinct: BTreeSet<&str> = names.iter().copied().collect();
            let distinct: Vec<&str> = distinct.into_iter().collect();
            wrong(i, "indexed_by", message, Some(known(by, &distinct)));
        }
    }
    Some(())
}
