//! `weir place advise --pid`: which objects of a running process are touched least.
//!
//! Where stalls are not counted for each object, a loss cannot be predicted, and none is.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_insight::studies::place::AdviseObjects;
use weir_lab::view::{View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_linux::heat::{clear_written, sees_written, written};
use weir_linux::memory::ProcessObject;
use weir_model::document::Document;
use weir_model::number::{figure, seconds};
use weir_model::units::{Bytes, Nanos};

use super::objects::on_tiers;
use super::seen::{Eyes, Seen, stays};
use crate::context::Context;
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::nodes::here;
use crate::progress::Progress;
use crate::session::say;
use crate::shown::show;

/// With fewer touches of a page in a second an object is cold: less than one in 100 s.
pub(super) const COLD: f64 = 0.01;

/// What was seen of a process, and what follows: a `place live` document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveAdvice {
    /// The process.
    pub process: u32,
    /// How long it was looked at, in seconds.
    pub seconds: f64,
    /// By what touches were seen.
    pub source: String,
    /// What that does not see.
    pub unseen: Vec<String>,
    /// The tier that takes objects.
    pub tier: String,
    /// How much was to be freed; absent where all that is cold is advised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<Bytes>,
    /// How much is on the tier then: the advised objects, and what is there already.
    pub then: Bytes,
    /// The command that moves them; empty where there are none.
    pub command: String,
    /// The objects, the coldest first.
    pub objects: Vec<LiveObject>,
}

/// An object of a running process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveObject {
    /// Its name.
    pub object: String,
    /// Its memory.
    pub resident: Bytes,
    /// The tiers that it is on, with their share of it.
    pub on: String,
    /// How much of it was touched in a window, on average.
    pub touched_pct: f64,
    /// Touches of one of its pages in a second, on average.
    pub heat: f64,
    /// How much of it was written in a window, on average; absent where that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_pct: Option<f64>,
    /// `move` or `stays`; `there` where it is on the tier already; `code`, `stack` or `small` (below 1 MiB), which stay.
    pub advice: String,
}

impl Outcome for LiveAdvice {
    const SCHEMA: &'static str = "weir/place-live/1";
    const TITLE: &'static str = "Objects of a process that may move";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |what: &str, text: String| Verdict::new(Severity::Note, what, text);
        let of = format!("process {}", self.process);
        let moved = self.objects.iter().filter(|one| one.advice == "move");
        let names: Vec<&str> = moved.clone().map(|one| one.object.as_str()).collect();
        let bytes: Bytes = moved.clone().map(|one| one.resident).sum();
        let heat = moved.map(|one| one.heat).fold(0.0, f64::max);
        let mut all = vec![match names.is_empty() {
            true => {
                let is_there = self.objects.iter().any(|one| one.advice == "there");
                let other = if is_there { "other " } else { "" };
                note(&of, format!("no {other}object is to move"))
            }
            false => note(
                &of,
                format!(
                    "move {} to {}: {bytes}, in objects whose pages are touched at most {} times a second on average",
                    names.join(", "),
                    self.tier,
                    figure(heat)
                ),
            ),
        }];
        all.push(note(
            "loss",
            "not predicted: this host does not count how long cores wait for an object. `weir place apply --verify` measures it"
                .into(),
        ));
        all.push(note(
            "seen",
            format!("by {}, for {}", self.source, seconds(self.seconds)),
        ));
        all.push(note("not seen", self.unseen.join("; ")));
        if !self.command.is_empty() {
            all.push(note("command", self.command.clone()));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let columns = vec![
            col("object"),
            col("resident").head("in memory"),
            col("on").empty(""),
            col("touched_pct").head("touched"),
            col("written_pct").head("written").if_any(),
            col("heat").head("touches of a page /s"),
            col("advice"),
        ];
        vec![View::table(
            "objects",
            "Objects, the coldest first",
            columns,
        )]
    }
}

/// Sums over windows.
#[derive(Debug, Clone, Default)]
struct Sum {
    touches: f64,
    touched: f64,
    written: f64,
    windows: f64,
}

/// Looks, and advises.
///
/// # Errors
/// There is no such process, nothing sees what it touches, or it has less memory than is to be freed.
pub(super) fn run(
    study: &AdviseObjects,
    process: u32,
    interval: Nanos,
    writes: bool,
    context: &Context,
) -> Result<()> {
    let host = here(context)?;
    let topology = host.view.topology()?;
    let lasts = study.lasts.map_or(10.0, |lasts| lasts.as_secs());
    let interval = interval.as_secs();
    if !(0.1..=3600.0).contains(&interval) || lasts < interval {
        return Err(Failure::request(
            "--interval is from 100 ms to an hour, and --for is no shorter",
        ));
    }
    if writes {
        sees_written(&host.root)?;
    }
    let mut eyes = Eyes::open(&host.root, process, context)?;
    let (source, unseen) = (eyes.source(), eyes.unseen(writes));
    let windows = (lasts / interval).round().max(1.0) as usize;
    let mut progress = Progress::begin("place advise", windows, context.global.quiet);
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let (mut last, mut passed, mut warnings) = (Vec::new(), 0.0, Vec::new());
    for window in 0..windows {
        let length = Duration::from_secs_f64(interval);
        if writes && let Err(why) = clear_written(&host.root, process) {
            warnings.push(why.reason);
            break;
        }
        let (found, took) = match eyes.window(length, || !context.stop.requested())? {
            Seen::Objects(found, took) => (found, took),
            Seen::Stopped => break,
            Seen::Ended => {
                warnings.push(format!("process {process} has ended"));
                break;
            }
        };
        let objects: Vec<ProcessObject> = found.iter().map(|(object, _)| object.clone()).collect();
        let written = match writes {
            true => written(&host.root, process, &objects).unwrap_or_default(),
            false => Vec::new(),
        };
        for (at, (object, heat)) in found.iter().enumerate() {
            let sum = sums.entry(object.name.clone()).or_default();
            sum.touches += heat.touches / took;
            let resident = heat.resident.get().max(1) as f64;
            sum.touched += heat.touched.get() as f64 / resident;
            let written = written.get(at).map_or(0.0, |bytes| bytes.get() as f64);
            sum.written += (written / resident).min(1.0);
            sum.windows += 1.0;
        }
        (last, passed) = (found, passed + took);
        let done = window + 1;
        progress.step(done, windows, done as f64 / windows as f64);
    }
    progress.end();
    eyes.end()?;
    if last.is_empty() {
        return Err(match warnings.pop() {
            Some(why) => Failure::work(why),
            None => Failure::Partial("stopped before the first interval was over".into()),
        });
    }
    let mut objects: Vec<LiveObject> = Vec::new();
    for (object, heat) in &last {
        let sum = sums.get(&object.name).cloned().unwrap_or_default();
        let on = on_tiers(&object.nodes, &topology);
        objects.push(LiveObject {
            object: object.name.clone(),
            resident: heat.resident,
            touched_pct: sum.touched / sum.windows.max(1.0) * 100.0,
            heat: sum.touches / sum.windows.max(1.0),
            written_pct: writes.then(|| sum.written / sum.windows.max(1.0) * 100.0),
            advice: match stays(object, heat.resident) {
                _ if on == study.tier.as_str() => "there",
                Some(why) => why,
                None => "stays",
            }
            .into(),
            on,
        });
    }
    objects.retain(|object| object.resident > Bytes(0));
    let all: Bytes = objects.iter().map(|object| object.resident).sum();
    let free = study.free.map(|part| part.of(all));
    let then = choose(&mut objects, free).ok_or_else(|| {
        Failure::request(format!(
            "all objects of process {process} that can move have less than the {} that are to be freed",
            free.unwrap_or(all)
        ))
    })?;
    let moved = objects.iter().filter(|one| one.advice == "move");
    let wishes: Vec<String> = moved
        .map(|one| {
            let wish = format!("{}={}", one.object, study.tier);
            shell_words::quote(&wish).into_owned()
        })
        .collect();
    let output = LiveAdvice {
        process,
        seconds: passed,
        source: source.into(),
        unseen,
        tier: study.tier.to_string(),
        free,
        then,
        command: match wishes.is_empty() {
            true => String::new(),
            false => format!("weir place apply --pid {process} {}", wishes.join(" ")),
        },
        objects,
    };
    if topology.tier(&study.tier).is_none() {
        warnings.push(format!("this host has no tier {}", study.tier));
    }
    warnings
        .iter()
        .for_each(|warning| say(&format!("weir: warning: {warning}")));
    let mut header = header(LiveAdvice::SCHEMA, context, &topology.processor);
    header.machine = host.identity;
    header.partial = context.stop.requested();
    header.warnings = warnings;
    show(context, &Document { header, output }, None)
}

/// Marks what is to move, the coldest first: enough to free this much, or all that is cold. Returns how much that is; `None` where
/// all together is not enough.
fn choose(objects: &mut [LiveObject], free: Option<Bytes>) -> Option<Bytes> {
    objects.sort_by(|a, b| {
        (a.heat.total_cmp(&b.heat))
            .then(b.resident.cmp(&a.resident))
            .then(a.object.cmp(&b.object))
    });
    let there = |object: &LiveObject| object.advice == "there";
    let mut freed = (objects.iter().filter(|object| there(object)))
        .map(|object| object.resident.get())
        .sum::<u64>();
    let wanted = free.map(Bytes::get);
    for object in objects.iter_mut() {
        let enough = match wanted {
            Some(wanted) => freed >= wanted,
            None => object.heat >= COLD,
        };
        if enough || object.advice != "stays" {
            continue;
        }
        object.advice = "move".into();
        freed += object.resident.get();
    }
    // What was taken before a larger one may no longer be needed; the hottest first.
    for object in objects.iter_mut().rev() {
        let bytes = object.resident.get();
        if object.advice == "move" && wanted.is_some_and(|wanted| freed - bytes >= wanted) {
            object.advice = "stays".into();
            freed -= bytes;
        }
    }
    wanted
        .is_none_or(|wanted| freed >= wanted)
        .then_some(Bytes(freed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(of: &[(&str, u64, f64)]) -> Vec<LiveObject> {
        let one = |(name, bytes, heat): &(&str, u64, f64)| LiveObject {
            object: (*name).into(),
            resident: Bytes(*bytes),
            on: "dram".into(),
            touched_pct: 0.0,
            heat: *heat,
            written_pct: None,
            advice: match *name {
                "far" => "there",
                "tiny" => "small",
                _ => "stays",
            }
            .into(),
        };
        of.iter().map(one).collect()
    }

    fn moved(objects: &[LiveObject]) -> Vec<&str> {
        let moved = objects.iter().filter(|one| one.advice == "move");
        moved.map(|one| one.object.as_str()).collect()
    }

    #[test]
    fn the_coldest_objects_that_free_enough_are_advised() {
        let all = [
            ("hot", 5000, 9.0),
            ("warm", 300, 0.5),
            ("cold", 4000, 0.0),
            ("tiny", 3, 0.0),
            ("cool", 200, 0.1),
        ];
        let mut found = objects(&all);
        assert_eq!(choose(&mut found, None), Some(Bytes(4000)));
        assert_eq!(moved(&found), ["cold"]);
        let mut found = objects(&all);
        assert_eq!(choose(&mut found, Some(Bytes(4250))), Some(Bytes(4300)));
        // The smaller one would not have been enough, and is not needed besides the larger.
        assert_eq!(moved(&found), ["cold", "warm"]);
        assert_eq!(choose(&mut objects(&all), Some(Bytes(9600))), None);
    }

    #[test]
    fn what_is_there_already_counts() {
        let mut found = objects(&[("far", 4000, 1.0), ("a", 3000, 0.2), ("b", 3000, 0.1)]);
        assert_eq!(choose(&mut found, Some(Bytes(3500))), Some(Bytes(4000)));
        assert!(moved(&found).is_empty());
    }
}
