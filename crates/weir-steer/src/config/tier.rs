//! The table `[tier]`: the kernel's own tiering, as `weir tier run` sets it, while the daemon runs.

use std::str::FromStr;

use weir_model::scope::Scope;
use weir_model::tiering::promotion::Alto;
use weir_model::tiering::{Balancing, KernelTiering};
use weir_model::toml::{Field, Table};
use weir_model::topology::TierName;
use weir_model::units::{Cycles, GbPerSec};

use super::read::{WHAT, set};

/// Groups that may be demoted.
const MOST_GROUPS: usize = 64;

/// The kernel's own tiering while the daemon runs.
#[derive(Debug, Clone, PartialEq)]
pub struct TierConfig {
    /// What follows the limit of promotion.
    pub controller: TierController,
    /// The settings. The limit of promotion is the most that is set.
    pub settings: KernelTiering,
    /// The weights of interleaving.
    pub weights: Vec<(TierName, u32)>,
    /// Control groups whose cold pages are demoted, with their rates.
    pub demote: Vec<(Scope, GbPerSec)>,
    /// Nothing is demoted of a group whose tasks waited for memory for more than this share of the time, in percent.
    pub pressure: f64,
    /// The thresholds of Alto.
    pub alto: Alto,
}

impl Default for TierConfig {
    /// Nothing is set. The pressure is that of TMO (ASPLOS 2022, section 3.3).
    fn default() -> Self {
        Self {
            controller: TierController::Fixed,
            settings: KernelTiering::default(),
            weights: Vec::new(),
            demote: Vec::new(),
            pressure: 0.1,
            alto: Alto::default(),
        }
    }
}

weir_model::named! {
    /// What sets the limit of promotion.
    #[derive(Default)]
    pub enum TierController {
        /// The configured limit, less what steering takes.
        #[default]
        Fixed = "fixed",
        /// The same, less where misses overlap.
        Alto = "alto",
    }
}

/// Reads the table.
pub(super) fn read(table: &Table<'_>) -> TierConfig {
    let mut config = TierConfig::default();
    let [controller, demotion, balancing, limit] =
        ["controller", "demotion", "balancing", "promote_limit"].map(|key| table.get(key));
    let [weights, demote, pressure] =
        ["weights", "demote", "pressure_pct"].map(|key| table.get(key));
    let [low, high] = ["alto_low", "alto_high"].map(|key| table.get(key));
    table.done(WHAT);
    let controller = controller.map(|f| (f.word(&TierController::ALL, TierController::name), f));
    if let Some((Some(TierController::Alto), field)) = &controller
        && limit.is_none()
    {
        let why = "`alto` gives parts of a limit of promotion, and none is configured";
        let advice = "add `promote_limit = \"0.1 GB/s\"`";
        field.report(why, Some(advice.into()));
    }
    set(
        &mut config.controller,
        controller.and_then(|(word, _)| word),
    );
    let on = |f: Field<'_>| Some(f.word(&["on", "off"], |word| word)? == "on");
    config.settings = KernelTiering {
        demotion: demotion.and_then(on),
        balancing: balancing.and_then(|f| f.word(&Balancing::ALL, Balancing::name)),
        promote_limit: limit.and_then(|f| rate(&f)),
    };
    config.weights = weights.map(|f| read_weights(&f)).unwrap_or_default();
    if let Some(field) = demote {
        config.demote = (field.tables(MOST_GROUPS).iter().flatten())
            .filter_map(group)
            .collect();
        if config.settings.demotion != Some(true) {
            let why = "without demotion the kernel would write these pages to swap or drop them";
            field.report(why, Some("add `demotion = \"on\"`".into()));
        }
    }
    let pressure = pressure.and_then(|f| f.number(0.0..=100.0));
    set(&mut config.pressure, pressure);
    let cycles = |f: &Field<'_>| f.number(1.0..=1e5).map(Cycles);
    set(&mut config.alto.low, low.as_ref().and_then(cycles));
    set(&mut config.alto.high, high.as_ref().and_then(cycles));
    if config.alto.low >= config.alto.high
        && let Some(field) = low.or(high)
    {
        let Alto { low, high } = config.alto;
        let (low, high) = (low.get(), high.get());
        let why = format!("`alto_low` ({low}) must be less than `alto_high` ({high})");
        field.report(why, None);
    }
    config
}

fn rate(field: &Field<'_>) -> Option<GbPerSec> {
    let rates = GbPerSec(f64::MIN_POSITIVE)..=GbPerSec(1e4);
    field.quantity_within("a rate such as \"0.1 GB/s\"", rates)
}

fn read_weights(field: &Field<'_>) -> Vec<(TierName, u32)> {
    let Some(table) = field.table() else {
        return Vec::new();
    };
    let one = |(name, field): (&str, Field<'_>)| {
        let weight = u32::try_from(field.whole(1..=255)?).ok()?;
        Some((TierName::named(name), weight))
    };
    table.fields().into_iter().filter_map(one).collect()
}

fn group(table: &Table<'_>) -> Option<(Scope, GbPerSec)> {
    let scope = table.need("scope", "\"cgroup:/batch.slice\"");
    let of = table.need("rate", "\"0.05 GB/s\"");
    table.done("a group that is demoted");
    let scope = scope?.read("a scope", Scope::from_str)?;
    Some((scope, rate(&of?)?))
}
