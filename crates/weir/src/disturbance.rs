//! Whether other work disturbs this host: said before it is measured, with the offer to wait.

use std::time::{Duration, Instant};

use weir_linux::Root;

use crate::context::Context;
use crate::session::say;

/// How long the processors are watched.
const LOOK: Duration = Duration::from_millis(300);
/// Other work below this share of all processors disturbs no more than a shell does, in percent.
const QUIET_PCT: f64 = 5.0;

/// Waits for a quiet machine as long as the user allows, and says what still disturbs it.
pub fn before_measuring(context: &Context) -> Option<String> {
    let began = Instant::now();
    let longest = context.global.wait.map_or(Duration::ZERO, |wait| {
        Duration::from_secs_f64(wait.as_secs().clamp(0.0, 86_400.0))
    });
    let mut disturbed = look()?;
    if !longest.is_zero() {
        context.note(&format!("weir: waiting for a quiet machine: {disturbed}"));
        context.stop.waits_for("a look at the processors");
    }
    while began.elapsed() < longest && !context.stop.requested() {
        disturbed = look()?;
    }
    let offer = match longest.is_zero() {
        true => "; --wait 600s waits for a quiet machine for up to ten minutes",
        false => "",
    };
    say(&format!(
        "weir: warning: this machine is disturbed: {disturbed}; its figures will scatter{offer}"
    ));
    Some(weir_model::disturbance::at_first(&disturbed))
}

/// What other work takes of all processors now; `None` if they are quiet, or it is not known. This program sleeps
/// meanwhile.
fn look() -> Option<String> {
    let times = || times(Root::live().text("/proc/stat").known()?);
    let before = times()?;
    std::thread::sleep(LOOK);
    between(&before, &times()?)
}

/// Time of all processors since boot: in all, idle, stolen by the hypervisor, in ticks.
fn times(stat: &str) -> Option<[f64; 3]> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are counted among the users.
    let ticks: Vec<f64> = (line.split_whitespace().take(8))
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let [.., idle, waits, _, _, stolen] = ticks.as_slice() else {
        return None;
    };
    Some([ticks.iter().sum(), idle + waits, *stolen])
}

fn between(before: &[f64; 3], after: &[f64; 3]) -> Option<String> {
    let [all, idle, stolen] = [0, 1, 2].map(|at| after[at] - before[at]);
    let share = |ticks: f64| 100.0 * ticks / all.max(1.0);
    let (busy, stolen) = (share(all - idle - stolen), share(stolen));
    let mut parts = Vec::new();
    if busy >= QUIET_PCT {
        parts.push(format!("other programs use {busy:.0} % of its processors"));
    }
    if stolen >= QUIET_PCT {
        parts.push(format!("the hypervisor takes {stolen:.0} % of their time"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_load_and_stolen_time_are_reported_with_their_shares() {
        let at = |text: &str| times(&format!("{text}\ncpu0 1 1 1 1 1 1 1 1\n")).unwrap();
        let before = at("cpu  100 0 50 1000 10 0 0 20 0 0");
        let found = |after: &str| between(&before, &at(after));
        assert_eq!(found("cpu  101 0 51 1098 10 0 0 20 0 0"), None);
        let busy = found("cpu  130 0 60 1060 10 0 0 20 0 0").unwrap();
        assert_eq!(busy, "other programs use 40 % of its processors");
        let both = found("cpu  120 0 50 1060 10 0 0 40 0 0").unwrap();
        assert!(
            both.ends_with("the hypervisor takes 20 % of their time"),
            "{both}"
        );
        assert_eq!(times("cpu  1 2"), None);
    }
}
