//! The document of `weir plan packing`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{Axis, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};

use super::Bounds;

/// A gain above this is one, in the words of the answer: the paper calls 5 % modest.
const VISIBLE: f64 = 1.01;

/// How VMs pack, by growth and pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackingBound {
    /// A row for each machine, growth and pool.
    pub packings: Vec<PackingRow>,
    /// Where the VMs are from, and what was done to them.
    pub notes: Vec<String>,
}

/// VMs of one growth in pools of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackingRow {
    /// The shape of the machines.
    pub machine: String,
    /// Factor by which VMs grew.
    pub inflate: u32,
    /// Machines of a pool.
    pub pool: u32,
    /// VMs that were packed.
    pub vms: u64,
    /// VMs that are larger than one machine, and in no pool of this growth.
    pub too_large: u64,
    /// No packing has fewer pools.
    pub lower: u64,
    /// Pools of the best packing that was found.
    pub upper: u64,
    /// The same, the emptiest pool counted by its fill relative to the mean of the others.
    pub fractional: f64,
    /// Machines in single ones for each machine in pools, by the packings found; above 1 a pool gains.
    pub gain: f64,
    /// The least that the bounds leave possible.
    pub gain_least: f64,
    /// The most that the bounds leave possible.
    pub gain_most: f64,
    /// The gain where the emptiest pool counts by its fill.
    pub gain_fractional: f64,
}

pub(super) fn row(
    machine: &str,
    (inflate, pool): (u32, u32),
    (vms, too_large): (u64, u64),
    single: Bounds,
    pooled: Bounds,
) -> PackingRow {
    let gain = |single: f64, pooled: f64| match pooled > 0.0 {
        true => single / (f64::from(pool) * pooled),
        false => 1.0,
    };
    // A packing of single machines is compared with itself.
    let (least, most) = match pool {
        1 => (1.0, 1.0),
        _ => (
            gain(single.lower as f64, pooled.upper as f64),
            gain(single.upper as f64, pooled.lower as f64),
        ),
    };
    PackingRow {
        machine: machine.to_owned(),
        inflate,
        pool,
        vms,
        too_large,
        lower: pooled.lower,
        upper: pooled.upper,
        fractional: pooled.fractional,
        gain: gain(single.upper as f64, pooled.upper as f64),
        gain_least: least,
        gain_most: most,
        gain_fractional: gain(single.fractional, pooled.fractional),
    }
}

impl Outcome for PackingBound {
    const SCHEMA: &'static str = "weir/plan-packing/1";
    const TITLE: &'static str = "Packing of VMs into pools";
    const WORDS: &'static str = "Above 1, VMs need fewer machines in pools; a pool is packed as one machine of its whole size.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        // VMs that fill no two pools leave nothing to compare.
        let tells = |row: &&PackingRow| row.pool > 1 && row.upper > 1;
        let now = || self.packings.iter().filter(|row| row.inflate == 1);
        let best =
            (now().filter(tells)).max_by(|a, b| a.gain_fractional.total_cmp(&b.gain_fractional));
        let mut notes = Vec::new();
        if let Some(best) = best {
            let mut larger = (self.packings.iter())
                .filter(|row| row.inflate > 1)
                .filter(tells)
                .peekable();
            let tried = larger.peek().is_some();
            let from = larger
                .filter(|row| row.gain_fractional >= VISIBLE)
                .map(|row| row.inflate)
                .min();
            let later = match from {
                Some(from) => format!("; VMs {from} times as large gain 1 % or more"),
                None if tried => "; larger VMs gain less than 1 % as well".into(),
                None => String::new(),
            };
            let percent = 100.0 * (best.gain_fractional - 1.0).max(0.0);
            let largest = now().filter(tells).map(|row| row.pool).max().unwrap_or(1);
            notes.push(note(
                "packing",
                format!("pools of up to {largest} machines hold at most {percent:.1} % more of these VMs{later}"),
            ));
        }
        let small = now().filter(|row| row.pool > 1 && row.upper <= 1 && row.vms > 0);
        if let Some(small) = small.min_by_key(|row| row.pool) {
            let single = now().find(|row| row.pool == 1 && row.machine == small.machine);
            let text = format!(
                "{} for these VMs, so that what pools of {} machines or more gain does not show; take a trace of more VMs",
                match single.map_or(0, |row| row.upper) {
                    1 => "1 machine is enough".to_owned(),
                    several => format!("{several} machines are enough"),
                },
                small.pool
            );
            let severity = match notes.is_empty() {
                true => Severity::Note,
                false => Severity::Doubt,
            };
            notes.push(Verdict::new(severity, "packing", text));
        }
        let left = self.packings.iter().filter(|row| row.too_large > 0);
        if let Some(row) = left.max_by_key(|row| row.too_large) {
            let text = format!(
                "{} of the VMs at {} times their size {} not fit into one machine, and {} in no pool of that growth",
                row.too_large,
                row.inflate,
                if row.too_large == 1 { "does" } else { "do" },
                if row.too_large == 1 { "is" } else { "are" }
            );
            notes.push(note("left out", text));
        }
        notes.extend(self.notes.iter().map(|text| note("trace", text.clone())));
        notes
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let columns = vec![
            col("inflate").head("VM size"),
            col("pool").head("machines"),
            col("vms").head("VMs"),
            col("too_large").head("too large"),
            col("lower").head("pools >="),
            col("upper").head("pools <="),
            col("gain").places(3),
            col("gain_least").head("at least").places(3),
            col("gain_most").head("at most").places(3),
            col("gain_fractional")
                .head("emptiest pool\nby its fill")
                .places(3),
        ];
        let lines = View::lines(
            "packings",
            "Gain of pooling by size of VMs, {machine}",
            ("pool", "machines of a pool"),
            ("gain_fractional", "machines saved, as a factor"),
            &["inflate"],
        );
        vec![
            View::table("packings", "Packing of {machine}", columns).each(&["machine"]),
            lines.each(&["machine"]).axes(Axis::Counts, Axis::Linear),
        ]
    }
}

#[cfg(test)]
mod tests {
    use weir_model::machine::Identity;
    use weir_model::topology::Topology;

    use super::*;
    use crate::packing::Packing;
    use crate::packing::bins::{Kind, Shape};

    fn said(vms: u64, inflate: &[u32]) -> Vec<String> {
        let packing = Packing {
            inflate: inflate.to_vec(),
            pools: vec![2, 16],
        };
        let (cores, memory) = (10, 40);
        let kinds = [Kind {
            shape: Shape { cores, memory },
            count: vms,
        }];
        let machine = Shape {
            cores: 100,
            memory: 400,
        };
        let packings = packing.of("m", &kinds, machine, &|| true).unwrap();
        let bound = PackingBound {
            packings,
            notes: Vec::new(),
        };
        let about = About {
            machine: &Identity::default(),
            topology: &Topology::default(),
            warnings: &[],
        };
        let said = bound.answer(about).into_iter();
        said.map(|verdict| verdict.text).collect()
    }

    #[test]
    fn a_pool_that_has_room_for_all_says_nothing_of_a_gain() {
        assert!(
            said(3, &[1])[0].starts_with("1 machine is enough for these VMs"),
            "{:?}",
            said(3, &[1])
        );
        // Five machines are three pools of two, and less than one of sixteen.
        let some = said(50, &[1]);
        assert_eq!(
            some[0],
            "pools of up to 2 machines hold at most 0.0 % more of these VMs"
        );
        assert!(
            some[1].starts_with("5 machines are enough for these VMs, so that what pools of 16"),
            "{some:?}"
        );
    }

    #[test]
    fn larger_vms_are_judged_only_where_they_were_packed() {
        assert!(!said(1600, &[1])[0].contains("larger VMs"));
        assert!(said(1600, &[1, 2])[0].ends_with("; larger VMs gain less than 1 % as well"));
        // Of VMs that no machine has room for nothing is known.
        assert!(!said(1600, &[1, 64])[0].contains("larger VMs"));
    }
}
