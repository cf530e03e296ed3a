//! From counted events to portable counters.

use std::collections::BTreeMap;

use super::{Counted, EventTable, Formula, Rule, Sign};
use crate::capability::Unavailable;
use crate::counters::{Counter, CounterSet, RunningShare};

/// What was counted of one event.
#[derive(Debug, Clone, PartialEq)]
pub struct Amount {
    /// The sum over all units and processors, scaled to the whole time, or the reason why there is no value.
    pub value: Result<u64, Unavailable>,
    /// Share of the time in which it was counted, the least of its parts.
    pub running: RunningShare,
    /// How many units were added; `None` where another program added them.
    pub units: Option<u32>,
}

/// What was counted, by the vendor's name of the event.
pub type Amounts = BTreeMap<String, Amount>;

/// What counted events mean.
#[derive(Debug, Clone, Copy)]
pub struct Meaning<'t> {
    /// The table of the processor that counted.
    pub table: &'t EventTable,
    /// Whether to say of every counter why it has no value; else only of those of which at least
    /// one event was counted.
    pub of_all: bool,
}

impl Meaning<'_> {
    /// The portable counters. One of which an event is missing or was refused has that reason.
    pub fn of(&self, amounts: &Amounts) -> CounterSet {
        let mut set = CounterSet::default();
        for (&counter, rule) in &self.table.rules {
            match rule {
                Rule::Counted(rule) => self.count(counter, rule, amounts, &mut set),
                Rule::Missing(why) if self.of_all => {
                    let title = &self.table.title;
                    let why = format!("{title} cannot count it: {why}");
                    set.set_unavailable(counter, Unavailable::because(why));
                }
                Rule::Missing(_) => {}
            }
        }
        if set.get(Counter::Cycles) == Ok(0) {
            let why = "zero cycles were counted: nothing ran, or the counter did not";
            set.set_unavailable(Counter::Cycles, Unavailable::because(why));
        }
        set
    }

    fn count(&self, counter: Counter, rule: &Counted, amounts: &Amounts, set: &mut CounterSet) {
        let formulas = std::iter::once(&rule.formula).chain(&rule.or);
        let present = |formula: &Formula| {
            formula
                .terms()
                .filter(|(_, e)| amounts.contains_key(*e))
                .count()
        };
        // The formula of which the most is there; the first of equals.
        let best = formulas.reduce(|best, next| match present(next) > present(best) {
            true => next,
            false => best,
        });
        let Some(formula) = best else { return };
        if present(formula) == 0 && !self.of_all {
            return;
        }
        match sum(rule, formula, amounts) {
            Ok((value, running)) => set.set_scaled(counter, value, running),
            Err(why) => set.set_unavailable(counter, why),
        }
    }
}

fn sum(
    rule: &Counted,
    formula: &Formula,
    amounts: &Amounts,
) -> Result<(u64, RunningShare), Unavailable> {
    let (mut plus, mut minus, mut running) = (0_u64, 0_u64, RunningShare::WHOLE);
    for (sign, event) in formula.terms() {
        let amount = amounts
            .get(event)
            .ok_or_else(|| Unavailable::because(format!("{event} was not counted")))?;
        let mut value = amount
            .value
            .clone()
            .map_err(|why| Unavailable::because(format!("{event}: {}", why.reason)))?;
        if rule.mean_of_units {
            value /= u64::from(amount.units.filter(|&n| n > 0).ok_or_else(|| {
                Unavailable::because(format!(
                    "{event} was added over units whose number is not known; \
                     `perf stat --no-merge` lists them"
                ))
            })?);
        }
        let side = match sign {
            Sign::Plus => &mut plus,
            Sign::Minus => &mut minus,
        };
        *side = side.checked_add(value).ok_or_else(|| {
            Unavailable::because(format!("the sum of {formula} is beyond 64 bits"))
        })?;
        if amount.running < running {
            running = amount.running;
        }
    }
    let value = plus.checked_sub(minus).ok_or_else(|| {
        Unavailable::because(format!("{formula} is negative: {plus} less {minus}"))
    })?;
    Ok((value / rule.divided_by, running))
}
