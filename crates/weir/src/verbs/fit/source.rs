//! What a fit is made from: stored runs, their exports, and logs of other instruments.

use std::path::Path;

use serde_json::{Map, Value, json};
use weir_lab::fit::Evidence;
use weir_model::capability::{Capability, Feature};
use weir_model::document::{BenchDocument, Point};
use weir_model::machine::{Identity, MachineKind};
use weir_model::platform::Platform;
use weir_model::published::measured::{self, Curve};
use weir_model::published::mlc_output::{self, MlcOptions};
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, Gigahertz};

use crate::context::Context;
use crate::documents::RecordDocument;
use crate::failure::{Failure, Result};
use crate::files;
use crate::store::Store;
use crate::stored;
use crate::verbs::runs::with_machine;

/// Exports are at most this long.
const MOST_BYTES: usize = 256 << 20;

/// What is known of a machine before it is fitted.
#[derive(Debug, Default)]
pub struct Known {
    /// What was measured.
    pub evidence: Evidence,
    /// The machine that it was measured on, where a run says it.
    pub topology: Option<Topology>,
    machine: Option<Identity>,
    /// Curves whose tier is not known yet, with the file that has them.
    curves: Vec<(String, Curve)>,
}

/// What the user says of logs.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// Which tier the curves of a name are of; an empty name is for all.
    pub tiers: Vec<(String, TierName)>,
    /// What MLC's outputs do not say.
    pub mlc: MlcOptions,
    /// The clock of the core whose cycles a Mess log counts.
    pub clock: Option<Gigahertz>,
}

impl Known {
    /// Reads a run of the store, or a file.
    ///
    /// # Errors
    /// There is neither, or the file has mistakes.
    pub fn read(&mut self, name: &str, said: &Said, context: &Context) -> Result<()> {
        let path = Path::new(name);
        let is_file = name == "-" || name.contains(['/', '.']) || path.is_file();
        if !is_file {
            let store = context.store_path()?;
            let run = stored::load(Store::open_existing(&store)?.as_ref(), &store, name)?;
            let id = run.summary.id;
            let bench =
                stored::bench_document(&run).map_err(|failure| failure.of(&format!("run {id}")))?;
            return self.bench(&with_machine(id, &bench.header.machine.name), bench);
        }
        let text = files::text(path, "log or export", MOST_BYTES)?;
        let shown = path
            .file_name()
            .map_or(name.into(), |n| n.to_string_lossy().into_owned());
        if text.trim_start().starts_with(['{', '[']) {
            return self.json(name, &shown, &text);
        }
        let head = text.lines().next().unwrap_or_default();
        if mlc_output::is_mlc_output(&text) {
            let stem = path
                .file_stem()
                .map_or(shown.clone(), |n| n.to_string_lossy().into_owned());
            let curves = mlc_output::parse(name, &text, &stem, said.mlc).map_err(refused)?;
            self.add(&shown, curves);
        } else if head.split(',').any(|column| column == "experiment") {
            let points = points_of_csv(name, &text)?;
            // A CSV does not say whether the machine is a model, whose pauses would be its load.
            self.points(&shown, &points, MachineKind::Host, None);
        } else {
            let clock = said.clock.unwrap_or(Gigahertz(1.0));
            let curves = measured::parse(name, &text, clock).map_err(refused)?;
            if head.starts_with("platform,") && said.clock.is_none() {
                return Err(Failure::request(format!(
                    "{name} counts latency in core cycles; add --base PLATFORM or --clock GHZ for the clock of \
                     the core"
                )));
            }
            self.add(&shown, curves);
        }
        Ok(())
    }

    fn json(&mut self, name: &str, shown: &str, text: &str) -> Result<()> {
        let wrong = |error: serde_json::Error| {
            let (line, column) = (error.line(), error.column());
            Failure::request(format!(
                "{name}:{line}:{column}: this is not an export of a run: {error}; write one with `weir runs export RUN -o FILE`"
            ))
        };
        let value: Value = serde_json::from_str(text).map_err(wrong)?;
        let documents = match value {
            Value::Array(all) => all,
            one => vec![one],
        };
        for value in documents {
            let value = match value["schema"].as_str() {
                Some(schema) if schema == RecordDocument::SCHEMA => value["document"].clone(),
                _ => value,
            };
            let schema = value["schema"].as_str().unwrap_or("of no kind").to_owned();
            if schema != BenchDocument::SCHEMA {
                return Err(Failure::request(format!(
                    "{name} is a document {schema}, but figures of `weir bench` are wanted ({})",
                    BenchDocument::SCHEMA
                )));
            }
            let bench = serde_json::from_value(value).map_err(wrong)?;
            self.bench(shown, bench)?;
        }
        Ok(())
    }

    fn bench(&mut self, from: &str, bench: BenchDocument) -> Result<()> {
        let machine = bench.header.machine;
        if self
            .machine
            .as_ref()
            .is_some_and(|known| known.digest != machine.digest)
        {
            return Err(Failure::request(format!(
                "{from} is of another machine than the run before it; fit one machine at a time"
            )));
        }
        let kind = machine.kind;
        self.machine = Some(machine);
        let lacks = |c: &Capability| c.feature == Feature::BareMetal && !c.present;
        self.evidence.chases.is_guest |= bench.header.capabilities.iter().any(lacks);
        // Figures of other tools say their tiers, and nothing of the machine.
        let mut page = None;
        if !bench.header.topology.cores.is_empty() {
            page = Some(bench.header.topology.page);
            self.topology = Some(bench.header.topology);
        }
        self.points(from, &bench.points, kind, page);
        Ok(())
    }

    fn points(&mut self, from: &str, points: &[Point], machine: MachineKind, page: Option<Bytes>) {
        self.name(from);
        self.evidence.add_points(points, machine, page);
    }

    fn add(&mut self, from: &str, curves: Vec<Curve>) {
        self.name(from);
        self.curves
            .extend(curves.into_iter().map(|curve| (from.to_owned(), curve)));
    }

    fn name(&mut self, from: &str) {
        let names = &mut self.evidence.from;
        if !names.is_empty() {
            names.push_str(", ");
        }
        names.push_str(from);
    }

    /// Gives each logged curve its tier, and applies the rule of what is held out.
    ///
    /// # Errors
    /// The tier of a curve is not known, or there is nothing to fit.
    pub fn settle(mut self, said: &Said, base: Option<&Platform>) -> Result<Self> {
        for (file, curve) in std::mem::take(&mut self.curves) {
            let place = match curve.at.as_str() {
                "" => curve.name.clone(),
                at => format!("{}@{at}", curve.name),
            };
            let named = said
                .tiers
                .iter()
                .find(|(name, _)| name.is_empty() || *name == curve.name || *name == place);
            let of_base = || base.and_then(|base| tier_of(base, &curve));
            match named.map(|(_, tier)| tier.clone()).or_else(of_base) {
                Some(tier) => self.evidence.add_log(&tier, &curve),
                None if base.is_some() && curve.is_from_other_socket() => {
                    self.evidence.left_out.push(format!(
                        "curves of {place}, from another socket than the memory is attached to"
                    ))
                }
                None => {
                    return Err(Failure::request(format!(
                        "{file} does not say which tier {place} is; add --tier {place}=dram, or =remote, =cxl0"
                    )));
                }
            }
        }
        self.evidence.settle();
        match self.evidence.is_empty() {
            true => Err(Failure::request(format!(
                "{} has no figure that a platform is fitted to; `weir bench all` or `weir bench loaded` gives them",
                self.evidence.from
            ))),
            false => Ok(self),
        }
    }
}

/// The tier of a platform whose log has the curve.
fn tier_of(base: &Platform, curve: &Curve) -> Option<TierName> {
    let is_it = |log: &Option<weir_model::platform::MeasuredLog>| {
        log.as_ref().is_some_and(|log| log.name == curve.name)
    };
    if curve.is_from_other_socket() {
        return None;
    }
    if is_it(&base.host.log) {
        return Some(TierName::dram());
    }
    let device = base
        .devices
        .iter()
        .position(|attached| is_it(&attached.device.log));
    device.map(TierName::cxl)
}

fn refused(mistakes: weir_model::platform::Mistakes) -> Failure {
    Failure::request(mistakes.to_string())
}

/// The points of `weir runs export --as csv`, as far as a fit needs them.
fn points_of_csv(name: &str, text: &str) -> Result<Vec<Point>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let wrong = |line: u64, why: String| Failure::request(format!("{name}:{line}: {why}"));
    let columns: Vec<String> = match reader.headers() {
        Ok(head) => head.iter().map(str::to_owned).collect(),
        Err(error) => return Err(wrong(1, error.to_string())),
    };
    for column in ["experiment", "tier", "op", "pattern", "threads", "prefetch"] {
        if !columns.iter().any(|c| c == column) {
            return Err(wrong(
                1,
                format!(
                    "there is no column `{column}`; export the run again with `weir runs export RUN --as csv`"
                ),
            ));
        }
    }
    let mut points = Vec::new();
    for (n, row) in reader.records().enumerate() {
        let line = n as u64 + 2;
        let row = row.map_err(|error| wrong(line, error.to_string()))?;
        let of_row = columns.iter().map(String::as_str).zip(row.iter());
        let value = point_of_row(of_row).map_err(|why| wrong(line, why))?;
        points.push(serde_json::from_value(value).map_err(|error| wrong(line, error.to_string()))?);
    }
    Ok(points)
}

/// A row with what was with it and its latencies in their places.
fn point_of_row<'r>(
    row: impl Iterator<Item = (&'r str, &'r str)>,
) -> std::result::Result<Value, String> {
    const NUMBERS: [&str; 8] = [
        "threads",
        "socket",
        "gbps",
        "ci95",
        "read_share",
        "pause_ns",
        "traffic_gbps",
        "cache_ways",
    ];
    let (mut point, mut beside) = (Map::new(), Map::new());
    for (column, text) in row.filter(|(_, text)| !text.is_empty()) {
        let (field, place) = match column.strip_prefix("beside_") {
            Some(field) => (field, &mut beside),
            None => (column, &mut point),
        };
        let number = || {
            text.parse::<f64>()
                .ok()
                .filter(|x| x.is_finite() && *x >= 0.0)
        };
        let value = match field {
            "experiment" | "tier" | "op" | "pattern" | "source" | "error" => json!(text),
            "prefetch" => json!(text == "true"),
            "mean_ns" => {
                let ns = number().ok_or_else(|| {
                    format!("`{column}` is `{text}`, but a positive number is wanted")
                })?;
                place.insert(
                    "ns".into(),
                    json!({"mean": ns, "p50": ns, "max": ns, "samples": 1}),
                );
                continue;
            }
            field if NUMBERS.contains(&field) => {
                let n = number().ok_or_else(|| {
                    format!("`{column}` is `{text}`, but a positive number is wanted")
                })?;
                match n.fract() == 0.0 && matches!(field, "threads" | "socket" | "cache_ways") {
                    true => json!(n as u64),
                    false => json!(n),
                }
            }
            _ => continue,
        };
        place.insert(field.into(), value);
    }
    point.insert("samples".into(), json!(1));
    if !beside.is_empty() {
        point.insert("beside".into(), Value::Object(beside));
    }
    Ok(Value::Object(point))
}
