//! A space of servers, as a file describes it.
//!
//! ```toml
//! kind = "design"
//! base = "emr2s+cxl-a"
//! search = "full"
//!
//! [[axis]]
//! name = "cards"
//! key = "cards"
//! values = [1, 2, 4]
//!
//! [[workload]]
//! name = "scan-column"
//!
//! [[objective]]
//! name = "speed"
//!
//! [[constraint]]
//! objective = "watts"
//! most = 600
//! ```

use weir_lab::interplay::CoRunners;
use weir_model::diagnostic::Mistakes;
use weir_model::frame::Frame;
use weir_model::platform::FileKind;
use weir_model::toml::{self, Field, Table};
use weir_steer::registry::Policy;

use crate::axis::{Axis, DERIVED, Key, check_tier, policy};
use crate::candidate;
use crate::objective::{Constraint, Objective};
use crate::outcome::Design;
use crate::search::{Method, count};
use crate::silicon::Item;
use crate::space::{Does, Models, Neighbour, PartsOf, Space, Weighted};

/// The kind of file in messages.
const FILE: &str = "a design space";
/// Values of an axis, at most.
const MOST_VALUES: usize = 256;
/// Axes, workloads, constraints, at most.
const MOST_ENTRIES: usize = 64;
/// Designs that one study tries, at most.
pub const MOST_POINTS: u64 = 1_000_000;
/// The largest bound.
const MOST: f64 = 1e15;
/// Threads of all tenants, at most.
const MOST_THREADS: i64 = 1024;

impl Space {
    /// Reads a file; `file` names it in messages.
    ///
    /// # Errors
    /// Every mistake in it, with its line and key: each value of each axis is tried alone.
    pub fn read(file: &str, text: &str, models: &Models) -> Result<Self, Mistakes> {
        toml::read(file, text, FILE, |root| read(root, models))
    }
}

fn read(root: &Table<'_>, models: &Models) -> Option<Space> {
    root.expect_kind("design", FILE)?;
    let axes = root.need(
        "axis",
        "[{ name = \"cards\", key = \"cards\", values = [1, 2] }]",
    );
    let axes = axes.and_then(|field| field.tables(MOST_ENTRIES));
    let axes: Option<Vec<(Axis, Vec<Field<'_>>)>> = axes.and_then(|tables| {
        let read: Vec<_> = tables.iter().map(axis).collect();
        let axes: Vec<_> = read.into_iter().collect::<Option<_>>()?;
        named_apart(&tables, &axes)?;
        Some(axes)
    });
    let base = root.get("base");
    let chosen = axes
        .iter()
        .flatten()
        .find(|(axis, _)| axis.key == Key::Platform);
    let base = match (&base, chosen) {
        // Otherwise each value of each axis would be wrong.
        (Some(field), None) => field.text().and_then(|base| {
            let known = (models.compose)(base).map(|_| base.to_owned());
            known.map_err(|why| field.report(why, None)).ok()
        }),
        (Some(field), Some(_)) => {
            field.report("`base` and an axis of platforms exclude each other", None);
            None
        }
        (None, Some((axis, _))) => axis.values.first().cloned(),
        (None, None) => {
            let help = "add `base = \"emr2s+cxl-a\"`, or an axis with key = \"platform\"";
            root.missing("base", help.into());
            None
        }
    };
    let policy = root.get("policy").map_or(Some("dram".to_owned()), |field| {
        field.read("tiers such as \"dram=3,cxl0=1\"", policy)?;
        field.text().map(str::to_owned)
    });
    let objectives = root.need("objective", "[{ name = \"speed\" }]");
    let objectives =
        objectives.and_then(|field| read_objectives(&field.tables(Objective::ALL.len())?));
    let constraints = read_constraints(root);
    let parts = read_parts(root);
    let workloads = root.get("workload").map_or(Some(Vec::new()), |field| {
        let tables = field.tables(MOST_ENTRIES)?;
        tables.iter().map(|table| workload(table, models)).collect()
    });
    let tenants = root.get("tenant").map_or(Some(Vec::new()), |field| {
        let tables = field.tables(MOST_ENTRIES)?;
        tables
            .iter()
            .map(|table| neighbour(table, models))
            .collect()
    });
    let controller = root
        .get("controller")
        .map_or(Some(Policy::None), |field| controller(&field));
    let method = root.get("search").map_or(Some(Method::Full), |field| {
        field.word(&Method::ALL, Method::name)
    });
    let points = root.get("points").map_or(Some(None), |field| {
        field
            .whole(1..=MOST_POINTS as i64)
            .map(|points| Some(points as u64))
    });
    let seed = root
        .get("seed")
        .map_or(Some(1), |field| field.whole(0..=i64::MAX));
    root.done(FILE);
    let (axes, fields): (Vec<Axis>, Vec<Vec<Field<'_>>>) = axes?.into_iter().unzip();
    let (method, points) = (method?, points?);
    let mut space = Space {
        base: base?,
        policy: policy?,
        axes,
        workloads: workloads?,
        tenants: tenants?,
        controller: controller?,
        objectives: objectives?,
        constraints: constraints?,
        parts: parts?,
        method,
        points: points.unwrap_or_default(),
        seed: u64::try_from(seed?).ok()?,
    };
    if space.runs() && space.workloads.is_empty() {
        let help = "add `[[workload]]` and `name = \"scan-column\"` below it";
        root.missing("workload", help.into());
        return None;
    }
    check_tenants(root, &space, &fields)?;
    space.points = points_of(root, &space, points)?;
    try_values(&space, &fields, models)?;
    Some(space)
}

/// Refuses axes of one name or one key, and those with the name of another column of the rows.
fn named_apart(tables: &[Table<'_>], axes: &[(Axis, Vec<Field<'_>>)]) -> Option<()> {
    let columns = Frame::of::<Design>("designs", &[]).columns;
    for (at, (table, (axis, _))) in tables.iter().zip(axes).enumerate() {
        let name = &axis.name;
        let mut earlier = axes.iter().take(at);
        let message = if earlier.any(|(other, _)| other.name == *name) {
            format!("two axes are called `{name}`")
        } else if columns.iter().any(|column| column.name == *name) {
            format!("an axis cannot be called `{name}`: a figure of designs is")
        } else if axes.iter().take(at).any(|(other, _)| other.key == axis.key) {
            let help = "give one axis the values of both";
            table.wrong("key", "another axis varies the same", Some(help.into()));
            return None;
        } else {
            continue;
        };
        let key = if table.has("name") { "name" } else { "key" };
        table.wrong(key, message, Some("give it another `name`".into()));
        return None;
    }
    Some(())
}

/// How many designs are tried.
fn points_of(root: &Table<'_>, space: &Space, points: Option<u64>) -> Option<u64> {
    let all = count(&space.sizes());
    match (space.method, points) {
        (Method::Full, Some(points)) if u128::from(points) < all => {
            let message =
                format!("a full search tries all {all} designs of this space, and not {points}");
            let help = "leave `points` out, or write `search = \"random\"`";
            root.wrong("points", message, Some(help.into()));
            None
        }
        (Method::Full, _) if all > u128::from(MOST_POINTS) => {
            let message =
                format!("a full search of this space has {all} designs, and {MOST_POINTS} at most");
            let help = "write `search = \"bayesian\"` and `points = 200`";
            root.wrong("search", message, Some(help.into()));
            None
        }
        (Method::Full, _) => u64::try_from(all).ok(),
        (_, Some(points)) => Some(points),
        (method, None) => {
            root.missing(
                "points",
                format!("a {method} search tries this many designs: add `points = 50`"),
            );
            None
        }
    }
}

/// Builds the base with each value of each axis, so that what can never be is refused at its place.
fn try_values(space: &Space, fields: &[Vec<Field<'_>>], models: &Models) -> Option<()> {
    let mut good = Some(());
    for (axis, fields) in space.axes.iter().zip(fields) {
        for (at, value) in axis.values.iter().enumerate() {
            let built = candidate::of(space, [(&axis.key, value.as_str())].into_iter(), models);
            if let Err(why) = built {
                let field = fields.get(at).or(fields.first())?;
                field.report(format!("`{}` cannot be `{value}`: {why}", axis.name), None);
                good = None;
            }
        }
    }
    good
}

fn axis<'d>(table: &Table<'d>) -> Option<(Axis, Vec<Field<'d>>)> {
    let key = table.need("key", "\"cards\"");
    let name = match table.get("name") {
        Some(field) => field.text().map(str::to_owned),
        None => key.as_ref().and_then(|key| Some(key.as_text()?.to_owned())),
    };
    let part = table
        .get("part")
        .map_or(Some(None), |field| field.text().map(|p| Some(p.to_owned())));
    let listed = table.get("values");
    let ranged = [table.get("from"), table.get("to"), table.get("step")];
    let unit = table.get("unit");
    table.done("an axis");
    let (key_field, part) = (key?, part?);
    let written = key_field.text()?;
    let Some(key) = Key::named(written, part.clone()) else {
        return unknown_key(&key_field, written, part.is_some());
    };
    let fields: Vec<Field<'d>>;
    let values: Vec<String> = match (listed, ranged) {
        (Some(list), [None, None, None]) => {
            fields = list.list("values", MOST_VALUES)?;
            if fields.is_empty() {
                return list
                    .must_be("a list of at least one value: a space without a design is none");
            }
            let read = |field: &Field<'d>| field.text_or_number();
            fields
                .iter()
                .map(read)
                .collect::<Vec<_>>()
                .into_iter()
                .collect::<Option<_>>()?
        }
        (None, [Some(from), Some(to), step]) => {
            let unit = unit.map_or(Some(""), |field| field.text())?;
            let values = range(&from, &to, step.as_ref(), unit)?;
            fields = vec![from; values.len()];
            values
        }
        _ => {
            table.wrong(
                "values",
                "an axis has either `values`, or `from` and `to`",
                Some("write `values = [1, 2, 4]`, or `from = 1` and `to = 4`".into()),
            );
            return None;
        }
    };
    let mut seen = Vec::new();
    for (value, field) in values.iter().zip(&fields) {
        if seen.contains(&value) {
            return field.must_be(format!("a list without a value twice: `{value}`"));
        }
        seen.push(value);
        if let Some((low, high, what)) = key.bounds() {
            let number = value
                .parse::<f64>()
                .ok()
                .filter(|n| (low..=high).contains(n));
            if !number.is_some_and(|n| !key.is_whole() || n.fract() == 0.0) {
                return field.must_be(what);
            }
        }
        if key == Key::Controller {
            controller(field)?;
        }
        if key == Key::Policy
            && let Err(why) = policy(value)
        {
            field.report(why, None);
            return None;
        }
    }
    Some((
        Axis {
            name: name?,
            key,
            values,
        },
        fields,
    ))
}

fn controller(field: &Field<'_>) -> Option<Policy> {
    field.word(&Policy::ALL, Policy::name)
}

/// Controllers and figures of tenants need tenants, and tenants a workload to run with.
fn check_tenants(root: &Table<'_>, space: &Space, fields: &[Vec<Field<'_>>]) -> Option<()> {
    if let Some(field) = root.get("controller") {
        check_controller(&field, space.controller, &space.tenants)?;
    }
    for (axis, fields) in space.axes.iter().zip(fields) {
        for (value, field) in axis.values.iter().zip(fields) {
            if let (Key::Controller, Some(policy)) = (&axis.key, Policy::named(value)) {
                check_controller(field, policy, &space.tenants)?;
            }
        }
    }
    let wants = space.figures().contains(&Objective::Neighbour);
    if wants && space.tenants.is_empty() {
        let help = "`neighbour` is the bandwidth of tenants: add `[[tenant]]` and `name = \"cxl0:nt_st\"` below it";
        root.missing("tenant", help.into());
        return None;
    }
    if !space.runs() && !space.tenants.is_empty() {
        let names: Vec<&str> = space.figures().iter().map(|own| own.name()).collect();
        let message = format!(
            "tenants run with workloads, and {} need no workload",
            names.join(", ")
        );
        root.wrong("tenant", message, Some("add the objective `speed`".into()));
        return None;
    }
    Some(())
}

fn unknown_key<T>(field: &Field<'_>, written: &str, of_part: bool) -> Option<T> {
    let of_files = [FileKind::Host, FileKind::Device];
    let files = of_files
        .iter()
        .flat_map(|kind| kind.keys())
        .map(|key| key.path);
    let silicon = Item::ALL.map(|item| format!("silicon.{item}"));
    let all: Vec<&str> = (DERIVED.into_iter().chain(files))
        .chain(silicon.iter().map(String::as_str))
        .collect();
    let close = weir_model::diagnostic::closest(written, all.iter().copied());
    let meant = weir_model::diagnostic::did_you_mean(&close);
    let message = match of_part {
        true => format!("`{written}` is no key of a device"),
        false => format!("an axis cannot vary `{written}`"),
    };
    let known = format!(
        "it is a key of a platform file (docs/platforms.md), silicon.FIGURE, or one of {}",
        DERIVED.join(", ")
    );
    field.report(
        message,
        Some(meant.map_or(known.clone(), |meant| format!("{meant} {known}"))),
    );
    None
}

/// The values of a range, with their unit.
fn range(
    from: &Field<'_>,
    to: &Field<'_>,
    step: Option<&Field<'_>>,
    unit: &str,
) -> Option<Vec<String>> {
    let (low, high) = (from.number(0.0..=MOST)?, to.number(0.0..=MOST)?);
    let by = step.map_or(Some(1.0), |step| step.number(1e-9..=MOST))?;
    if high < low {
        return to.must_be(format!(
            "at least `from`, which is {low}: a space without a design is none"
        ));
    }
    let steps = ((high - low) / by + 1e-9).floor();
    if steps >= MOST_VALUES as f64 {
        return to.must_be(format!("at most {MOST_VALUES} steps above `from`"));
    }
    let value = |at: usize| {
        let number = ((low + by * at as f64) * 1e9).round() / 1e9;
        format!("{number} {unit}").trim().to_owned()
    };
    Some((0..=steps as usize).map(value).collect())
}

fn workload(table: &Table<'_>, models: &Models) -> Option<Weighted> {
    let name = table.need("name", "\"scan-column\"");
    let weight = table
        .get("weight")
        .map_or(Some(1.0), |field| field.number(1e-6..=1e6));
    table.done("a workload");
    let field = name?;
    let name = field.text()?;
    let found = (models.workload)(name);
    let workload = found.map_err(|why| field.report(why, None)).ok()?;
    Some(Weighted {
        workload,
        weight: weight?,
        largest_region: (models.largest_region)(name),
    })
}

fn read_objectives(tables: &[Table<'_>]) -> Option<Vec<Objective>> {
    let mut all: Vec<Objective> = Vec::new();
    for table in tables {
        let field = table.need("name", "\"speed\"");
        table.done("an objective");
        let field = field?;
        let objective = field.word(&Objective::ALL, Objective::name)?;
        if all.contains(&objective) {
            return field.must_be("named once");
        }
        all.push(objective);
    }
    Some(all)
}

fn read_constraints(root: &Table<'_>) -> Option<Vec<Constraint>> {
    let Some(field) = root.get("constraint") else {
        return Some(Vec::new());
    };
    let mut all: Vec<Constraint> = Vec::new();
    for table in field.tables(MOST_ENTRIES)? {
        let name = table.need("objective", "\"watts\"");
        let bound = |key| {
            let bound = table.get(key);
            bound.map_or(Some(None), |field| field.number(-MOST..=MOST).map(Some))
        };
        let (least, most) = (bound("least"), bound("most"));
        table.done("a constraint");
        let objective = name?.word(&Objective::ALL, Objective::name)?;
        let own = Constraint {
            objective,
            least: least?,
            most: most?,
        };
        if own.least.is_none() && own.most.is_none() {
            table.missing("most", "a constraint has `least`, `most` or both".into());
            return None;
        }
        let key = if own.least.is_some() { "least" } else { "most" };
        let of_it = || {
            all.iter()
                .chain([&own])
                .filter(|other| other.objective == objective)
        };
        let least = of_it()
            .filter_map(|own| own.least)
            .fold(f64::NEG_INFINITY, f64::max);
        let most = of_it()
            .filter_map(|own| own.most)
            .fold(f64::INFINITY, f64::min);
        if least > most {
            let unit = objective.unit();
            table.wrong(
                key,
                format!("{objective} cannot be at least {least} {unit} and at most {most} {unit}"),
                None,
            );
            return None;
        }
        all.push(own);
    }
    Some(all)
}

fn read_parts(root: &Table<'_>) -> Option<Vec<PartsOf>> {
    let Some(field) = root.get("parts") else {
        return Some(Vec::new());
    };
    let one = |table: &Table<'_>| {
        let on = table.need("on", "\"emr2s\"").and_then(|field| field.text());
        let number = |key| {
            let number = table.get(key);
            number.map_or(Some(None), |field| field.number(0.0..=1e9).map(Some))
        };
        let parts = [
            number("cores"),
            number("llc_mb"),
            number("ddr"),
            number("lanes"),
            number("channels"),
        ];
        table.done("the parts of a platform");
        let [cores, llc_mb, ddr, lanes, channels] = parts;
        Some(PartsOf {
            on: on?.to_owned(),
            cores: cores?,
            llc_mb: llc_mb?,
            ddr: ddr?,
            lanes: lanes?,
            channels: channels?,
        })
    };
    field.tables(MOST_ENTRIES)?.iter().map(one).collect()
}

/// A tenant of a file: its `name` as `weir steer run --restrain` takes it, and `threads`.
fn neighbour(table: &Table<'_>, models: &Models) -> Option<Neighbour> {
    let name = table.need("name", "\"cxl0:nt_st\"");
    let threads = table.get("threads").map_or(Some(None), |field| {
        field.whole(1..=MOST_THREADS).map(|n| Some(n as u32))
    });
    let field = name?;
    let written: CoRunners = field.read("a tenant such as \"cxl0:nt_st\"", str::parse)?;
    let refuse = |why: &str| -> Option<Neighbour> {
        field.report(why, None);
        None
    };
    let (does, pages, own) = match written {
        CoRunners::Tier(..) => {
            return refuse(
                "a tenant has an instruction or a program: \"cxl0:nt_st\", \"dram:redis-ycsb-a\"",
            );
        }
        CoRunners::One(op) if op.socket > 0 || op.host > 0 => {
            return refuse("tenants of a design run on the socket of its workloads");
        }
        CoRunners::One(op) => {
            let pages = vec![(op.tier.as_str().to_owned(), 1)];
            (Does::Stream(op), pages, None)
        }
        CoRunners::Program(placed) => {
            let found = (models.workload)(&placed.program);
            let workload = found.map_err(|why| field.report(why, None)).ok()?;
            let pages = placed.tiers.iter();
            let pages = pages.map(|(tier, weight)| (tier.as_str().to_owned(), *weight));
            let threads = workload.threads;
            let pages = pages.collect();
            (Does::Program(Box::new(workload)), pages, Some(threads))
        }
    };
    let wrong = pages.iter().find_map(|(tier, _)| check_tier(tier).err());
    if let Some(why) = wrong {
        return refuse(&why);
    }
    table.done("a tenant");
    let Some(threads) = threads?.or(own) else {
        table.missing("threads", "add `threads = 8`".into());
        return None;
    };
    Some(Neighbour {
        name: field.text()?.to_owned(),
        does,
        pages,
        threads,
    })
}

/// Whether a file's controller is of use: it limits tenants.
fn check_controller(field: &Field<'_>, policy: Policy, tenants: &[Neighbour]) -> Option<()> {
    if policy == Policy::None || !tenants.is_empty() {
        return Some(());
    }
    let help = "add `[[tenant]]` with `name = \"cxl0:nt_st\"` and `threads = 8` below it";
    field.report(
        format!("`{policy}` has no tenant to limit"),
        Some(help.into()),
    );
    None
}
