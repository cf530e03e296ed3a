//! What a long plan will take, said before it starts.

use std::io::{self, BufRead, IsTerminal};
use std::time::Instant;

use weir_lab::PointSpec;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::machine::Chosen;
use crate::session;
use crate::session::say;

/// Plans up to this many measurements start without a word.
const ASK_ABOVE: usize = 10_000;
/// Points that are measured to judge the others by.
const TRIED: usize = 3;

/// Says how many figures a long plan takes at least and about how long and how large they will be, and goes on
/// only if that was agreed to: by `--yes`, or by an answer on the terminal.
///
/// The estimate is made from a few points of the plan, spread over it, that are measured here and
/// not kept.
///
/// # Errors
/// No one agreed.
pub fn agree(
    context: &Context,
    chosen: &Chosen,
    plan: &[PointSpec],
    figures: usize,
    yes: bool,
) -> Result<()> {
    if figures <= ASK_ABOVE {
        return Ok(());
    }
    let said = format!(
        "{figures} figures on {}: {}",
        chosen.identity.name,
        estimate(context, chosen, plan, figures)?
    );
    if yes {
        context.note(&said);
        return Ok(());
    }
    if session::is_active() || !io::stdin().is_terminal() {
        return Err(Failure::request(format!(
            "{said}; add --yes to measure them all, or leave values out"
        )));
    }
    say(&format!("{said}. Measure them all? [y/N]"));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::request("nothing was measured"))
}

fn estimate(
    context: &Context,
    chosen: &Chosen,
    plan: &[PointSpec],
    figures: usize,
) -> Result<String> {
    let last = plan.len().saturating_sub(1);
    let tried: Vec<PointSpec> = (0..TRIED)
        .filter_map(|n| plan.get(last * n / (TRIED - 1)).cloned())
        .collect();
    let testbed = chosen.testbed.as_ref();
    let began = Instant::now();
    let done = weir_lab::run(testbed, &tried, context.global.seed, &());
    let took_s = began.elapsed().as_secs_f64();
    let mut bytes = 0;
    for done in &done {
        let text = |error: serde_json::Error| anyhow::Error::new(error).context("cannot estimate");
        bytes += serde_json::to_vec(&done.point).map_err(text)?.len();
        bytes += serde_json::to_vec(&done.record).map_err(text)?.len();
        bytes += serde_json::to_vec(&done.spec).map_err(text)?.len();
    }
    let side_by_side = testbed.parallelism().max(1);
    let abreast = side_by_side.min(tried.len()).max(1) as f64;
    let share = figures as f64 / done.len().max(1) as f64;
    let whole_s = took_s * share * abreast / side_by_side as f64;
    Ok(format!(
        "about {} and {} in the store, judged by {} of them",
        length(whole_s),
        size(bytes as f64 * share),
        done.len()
    ))
}

/// A length of time to one figure or two.
fn length(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s if s < 2.0 * 86_400.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

/// A size to one figure or two.
fn size(bytes: f64) -> String {
    match bytes {
        b if b < 1e9 => format!("{:.0} MB", (b / 1e6).max(1.0)),
        b => format!("{:.1} GB", b / 1e9),
    }
}
