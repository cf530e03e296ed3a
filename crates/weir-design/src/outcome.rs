//! What a design study finds.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::study::lists;
use weir_lab::view::{Only, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::frame::{Frame, with_prefix};

use crate::objective::Objective;
use crate::search::Method;

/// Designs of a space, and what matters in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Designs {
    /// Every design that was tried, in the order of the search.
    pub designs: Vec<Design>,
    /// What each axis does to each objective.
    pub effects: Vec<Effect>,
    /// The names of the axes.
    pub axes: Vec<String>,
    /// Those with more than one value.
    pub varied: Vec<String>,
    /// What designs are compared by.
    pub objectives: Vec<Objective>,
    /// What they must meet, in words.
    pub constraints: Vec<String>,
    /// How the space was searched.
    pub search: Method,
    /// The seed of the search.
    pub search_seed: u64,
    /// How many designs the space has.
    pub space: f64,
}

/// A design.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Design {
    /// The value of each axis, in words.
    pub design: String,
    /// The value of each axis, in the order of the axes.
    pub values: Vec<String>,
    /// The platform, as `--on` takes it.
    pub on: String,
    /// Instructions a second, of those of the first design that can be: the geometric mean of the workloads by weight.
    #[schemars(extend("x-unit" = "x"))]
    pub speed: Option<f64>,
    /// Bandwidth of the tenants that run with the workloads; the mean over the workloads by weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour_gbps: Option<f64>,
    /// 99th percentile of loads from memory while the workloads run; the highest of them.
    pub p99_ns: Option<f64>,
    /// Power of the server.
    #[schemars(extend("x-unit" = "W"))]
    pub watts: Option<f64>,
    /// Power times the square of cycles per instruction.
    #[schemars(extend("x-unit" = "W*CPI^2"))]
    pub edp: Option<f64>,
    /// Die area of the packages, in units of 1 MB of last-level cache.
    pub area: Option<f64>,
    /// Pins of the package for memory.
    pub pins: Option<f64>,
    /// Price of memory and cards.
    #[schemars(extend("x-unit" = "USD"))]
    pub dollars: Option<f64>,
    /// Whether it meets every constraint.
    pub feasible: bool,
    /// Whether no feasible design is better in one objective and as good in all.
    pub front: bool,
    /// `front`, `dominated`, `infeasible`, or `impossible` where it has no figures.
    pub standing: String,
    /// Why it has no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The main effect of an axis on an objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// The axis.
    pub axis: String,
    /// The objective.
    pub objective: Objective,
    /// The value that is best in the mean of all others.
    pub best: String,
    /// The value that is worst.
    pub worst: String,
    /// The difference between the two, in the unit of the objective.
    pub range: f64,
    /// That unit.
    pub unit: String,
    /// The difference, of the mean over all designs.
    pub of_mean_pct: f64,
    /// The difference, of the sum over all axes.
    pub share_pct: f64,
}

/// Designs that a sentence names.
const NAMED: usize = 3;
/// Designs that a table shows.
const SHOWN: usize = 30;

impl Design {
    fn figure(&self, objective: Objective) -> Option<f64> {
        match objective {
            Objective::Speed => self.speed,
            Objective::Neighbour => self.neighbour_gbps,
            Objective::P99 => self.p99_ns,
            Objective::Watts => self.watts,
            Objective::Edp => self.edp,
            Objective::Area => self.area,
            Objective::Pins => self.pins,
            Objective::Dollars => self.dollars,
        }
    }
}

impl Designs {
    /// The axis with the largest share of main effects, in the mean of the objectives, and that share; none where another
    /// one has as much, or there is no other.
    fn matters_most(&self) -> Option<(&str, f64)> {
        let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
        for own in &self.effects {
            *shares.entry(&own.axis).or_default() += own.share_pct / self.objectives.len() as f64;
        }
        let mut shares: Vec<(&str, f64)> = shares.into_iter().collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        match shares[..] {
            // As they are printed, without digits behind the point.
            [most, next, ..] if most.1.round() > next.1.round() => Some(most),
            _ => None,
        }
    }

    fn objectives_in_words(&self) -> String {
        let names: Vec<&str> = self.objectives.iter().map(|own| own.name()).collect();
        match names.as_slice() {
            [many @ .., last] if !many.is_empty() => format!("{} and {last}", many.join(", ")),
            names => names.join(""),
        }
    }

    /// Why there is a figure of no design: how many were tried, and the reason of the first.
    pub fn why_none(&self) -> Option<String> {
        let why = self.designs.first()?.why.as_deref()?;
        let none = self.designs.iter().all(|own| own.why.is_some());
        none.then(|| {
            let tried = self.designs.len();
            format!("none of {tried} designs can be measured; of the first: {why}")
        })
    }

    fn conclusion(&self) -> String {
        let (tried, on) = (self.designs.len(), self.on_front());
        if on.is_empty() {
            let possible = self.designs.iter().filter(|own| own.why.is_none()).count();
            return match possible {
                0 => format!("none of {tried} designs can be measured"),
                _ => format!("none of {tried} designs meets every constraint"),
            };
        }
        let named: Vec<&str> = on
            .iter()
            .take(NAMED)
            .map(|own| own.design.as_str())
            .collect();
        let more = match on.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let are = if on.len() == 1 { "is" } else { "are" };
        let matters = self.matters_most().map_or(String::new(), |(axis, share)| {
            format!("; `{axis}` matters most, with {share:.0} % of the main effects")
        });
        format!(
            "{} of {tried} designs {are} on the front of {}: {}{more}{matters}",
            on.len(),
            self.objectives_in_words(),
            named.join("; ")
        )
    }

    /// The designs on the front, the best of the first objective first.
    fn on_front(&self) -> Vec<&Design> {
        let mut on: Vec<&Design> = self.designs.iter().filter(|own| own.front).collect();
        if let Some(&first) = self.objectives.first() {
            let cost = |own: &Design| own.figure(first).map_or(f64::INFINITY, |f| first.cost(f));
            on.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        }
        on
    }
}

impl Outcome for Designs {
    const SCHEMA: &'static str = "weir/design/1";
    const TITLE: &'static str = "Designs";
    const WORDS: &'static str = "A design is on the front if no other that meets the constraints is better in one objective and as good in all.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let mut all = vec![Verdict::new(Severity::Note, "design", self.conclusion())];
        let reached = |words: &String| {
            let (name, bound) = words.split_once(' ')?;
            let objective = Objective::named(name)?;
            let bound = match bound.strip_suffix(" 1 pins") {
                Some(bound) => format!("{bound} 1 pin"),
                None => bound.to_owned(),
            };
            let verb = if bound.starts_with("at most") {
                "allowed"
            } else {
                "wanted"
            };
            let known = self.designs.iter().filter_map(|own| own.figure(objective));
            let (low, high) = known.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), f| {
                (low.min(f), high.max(f))
            });
            (low <= high).then(|| {
                let places = usize::from(low.fract() != 0.0 || high.fract() != 0.0);
                format!(
                    "{name}: {bound} is {verb}; the designs have {low:.places$} to {high:.places$}"
                )
            })
        };
        if !self.designs.iter().any(|own| own.feasible) {
            let doubts = self.constraints.iter().filter_map(reached);
            all.extend(doubts.map(|text| Verdict::new(Severity::Doubt, "constraints", text)));
        }
        for objective in &self.objectives {
            let own = self
                .effects
                .iter()
                .filter(|own| own.objective == *objective);
            let most = own.max_by(|a, b| a.range.total_cmp(&b.range));
            if let Some(most) = most.filter(|most| most.range > 0.0) {
                let text = format!(
                    "`{}` has the largest effect: {} is best and {} worst, {:.1} % of the mean apart",
                    most.axis, most.best, most.worst, most.of_mean_pct
                );
                all.push(Verdict::new(Severity::Note, objective.name(), text));
            }
        }
        let mut whys: BTreeMap<&str, usize> = BTreeMap::new();
        for why in self.designs.iter().filter_map(|own| own.why.as_deref()) {
            *whys.entry(why).or_default() += 1;
        }
        for (why, count) in whys {
            let text = format!("of {count} there are no figures: {why}");
            all.push(Verdict::new(Severity::Note, "impossible", text));
        }
        if self.designs.iter().any(|own| own.standing == "front")
            && self.space > self.designs.len() as f64
        {
            let text = format!(
                "{} of {} designs were tried; others may be better",
                self.designs.len(),
                self.space
            );
            all.push(Verdict::new(Severity::Note, self.search.name(), text));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let columns = || {
            let mut columns = vec![col("design")];
            columns.extend(Objective::ALL.map(|objective| col(objective.column()).if_any()));
            columns
        };
        let mut rest = columns();
        rest.push(col("standing"));
        let mut views = vec![
            View::table("front", "Designs on the front", columns()),
            View::table("designs", "Other designs", rest)
                .only(Only::OneOf("standing", &["dominated", "infeasible"]))
                .at_most(SHOWN),
            View::grid(
                "effects",
                "Main effects of axes, share of each objective",
                "axis",
                &["objective"],
                "share_pct",
            ),
        ];
        if let [one, other, ..] = self.objectives.as_slice() {
            let title = |own: &Objective| format!("{own} ({})", own.unit());
            views.push(
                View::scatter(
                    "designs",
                    format!("Designs by {one} and {other}"),
                    (other.column(), title(other)),
                    (one.column(), &title(one)),
                    ("design", "standing"),
                    &[],
                )
                .words("Every dot is a design; those of the front are marked."),
            );
        }
        let figures = self.objectives.iter().map(|own| own.column().to_owned());
        let axes = self.varied.iter().cloned().chain(figures).collect();
        views.push(View::parallel(
            "designs",
            "Designs by axes and objectives",
            axes,
            ("design", "standing"),
        ));
        views
    }

    /// The lists, with a column for each axis in front of the designs, and those on the front by their first objective.
    fn frames(&self) -> Vec<Frame> {
        let mut frames = lists(self);
        let on: Vec<Design> = self.on_front().into_iter().cloned().collect();
        if let Some(frame) = frames.iter_mut().find(|frame| frame.name == "designs") {
            *frame = self.with_axes(frame, &self.designs);
        }
        frames.push(self.with_axes(&Frame::of("front", &on), &on));
        frames
    }
}

impl Designs {
    fn with_axes(&self, frame: &Frame, designs: &[Design]) -> Frame {
        // A column of numbers where every value is one.
        let number = |text: &String| text.parse::<f64>().ok();
        let values = |axis: usize| designs.iter().filter_map(move |own| own.values.get(axis));
        let are_numbers: Vec<bool> = (0..self.axes.len())
            .map(|axis| values(axis).all(|value| number(value).is_some()))
            .collect();
        let names = self.axes.iter().zip(&are_numbers);
        let head: Vec<(&str, serde_json::Value)> = names
            .map(|(name, is)| (name.as_str(), if *is { 0.into() } else { "".into() }))
            .collect();
        let mut wide = with_prefix(&head, frame);
        for (row, design) in wide.rows.iter_mut().zip(designs) {
            for ((place, value), is) in row.iter_mut().zip(&design.values).zip(&are_numbers) {
                *place = match number(value).filter(|_| *is) {
                    Some(number) => number.into(),
                    None => value.as_str().into(),
                };
            }
        }
        wide
    }
}
