//! The section of a table that says what each portable counter is.

use std::collections::BTreeMap;

use toml_edit::{Item, TableLike, Value};

use super::read::{Reader, at};
use super::{Confidence, Counted, Event, Formula, Rule};
use crate::counters::Counter;
use crate::diagnostic::{closest, did_you_mean, quote};

impl Reader<'_, '_> {
    pub(super) fn rules(
        &mut self,
        root: &dyn TableLike,
        events: &BTreeMap<String, Event>,
    ) -> BTreeMap<Counter, Rule> {
        let mut rules = BTreeMap::new();
        let section = self.section(root, "counters");
        for (name, item) in &section {
            let path = format!("counters.{name}");
            let Some(counter) = Counter::named(name).filter(|c| !c.is_software()) else {
                let names = Counter::ALL.iter().map(|counter| counter.name());
                self.mistakes.report(
                    at(item),
                    Some(&path),
                    format!("`{}` is no counter of the hardware", quote(name)),
                    did_you_mean(&closest(name, names)),
                );
                continue;
            };
            if let Some(rule) = self.rule(item, &path, events) {
                rules.insert(counter, rule);
            }
        }
        let there = (root.get("counters")).is_some_and(|section| section.as_table_like().is_some());
        for counter in Counter::ALL.iter().filter(|c| !c.is_software()) {
            if there && !section.iter().any(|(name, _)| *name == counter.name()) {
                self.mistakes.report(
                    root.get("counters").map_or(0..0, at),
                    Some("counters"),
                    format!("nothing is said of `{counter}`"),
                    Some(format!(
                        "write `\"{counter}\" = {{ missing = \"…\" }}` if it cannot be counted"
                    )),
                );
            }
        }
        rules
    }

    fn rule(&mut self, item: &Item, path: &str, events: &BTreeMap<String, Event>) -> Option<Rule> {
        if item.as_str().is_some() {
            let formula = self.formula(item.as_value()?, path, events)?;
            return Some(Rule::Counted(Counted {
                formula,
                or: Vec::new(),
                divided_by: 1,
                mean_of_units: false,
                confidence: Confidence::High,
                why: None,
            }));
        }
        let Some(table) = item.as_table_like() else {
            self.wrong(at(item), path, "write a formula, or `{ missing = \"…\" }`");
            return None;
        };
        const PARTS: [&str; 7] = [
            "is",
            "or",
            "divided_by",
            "mean_of_units",
            "confidence",
            "why",
            "missing",
        ];
        self.only(table, path, &PARTS);
        if let Some(missing) = table.get("missing") {
            if table.len() > 1 {
                self.wrong(at(missing), path, "what is `missing` has nothing beside it");
            }
            return self.text(table, "missing", path).map(Rule::Missing);
        }
        let Some(is) = table.get("is").and_then(Item::as_value) else {
            self.wrong(
                at(item),
                path,
                &format!("`{path}` has neither `is` nor `missing`"),
            );
            return None;
        };
        let formula = self.formula(is, path, events)?;
        let or = match table.get("or").map(Item::as_array) {
            None => Vec::new(),
            Some(Some(list)) => list
                .iter()
                .filter_map(|other| self.formula(other, path, events))
                .collect(),
            Some(None) => {
                self.wrong(at(item), path, "`or` is a list of formulas");
                Vec::new()
            }
        };
        let confidence = match table.contains_key("confidence") {
            false => Confidence::High,
            true => {
                let word = self.text(table, "confidence", path)?;
                let known = Confidence::ALL.into_iter().find(|c| c.name() == word);
                let known = known.or_else(|| {
                    self.wrong(at(item), path, "`confidence` is low, medium or high");
                    None
                });
                known?
            }
        };
        let why = match table.contains_key("why") {
            true => Some(self.text(table, "why", path)?),
            false => None,
        };
        if why.is_none() && confidence != Confidence::High {
            self.wrong(
                at(item),
                path,
                &format!("`{path}` is not certain, but not why"),
            );
        }
        let mean_of_units = match table.get("mean_of_units").map(|item| item.as_bool()) {
            None => false,
            Some(Some(mean)) => mean,
            Some(None) => {
                self.wrong(at(item), path, "`mean_of_units` is true or false");
                false
            }
        };
        let divided_by = match table.contains_key("divided_by") {
            true => self.number(table, "divided_by", path, 1, 1 << 20)? as u64,
            false => 1,
        };
        Some(Rule::Counted(Counted {
            formula,
            or,
            divided_by,
            mean_of_units,
            confidence,
            why,
        }))
    }

    fn formula(
        &mut self,
        value: &Value,
        path: &str,
        events: &BTreeMap<String, Event>,
    ) -> Option<Formula> {
        let span = value.span().unwrap_or(0..0);
        let Some(text) = value.as_str() else {
            self.wrong(span, path, "a formula is text in quotes: `\"A + B\"`");
            return None;
        };
        let formula = match Formula::parse(text) {
            Ok(formula) => formula,
            Err(message) => {
                self.wrong(span, path, &message);
                return None;
            }
        };
        let mut pmus = formula.terms().map(|(_, name)| events.get(name));
        let first = pmus.next().flatten();
        let strange = pmus
            .flatten()
            .find(|event| Some(&event.pmu) != first.map(|e| &e.pmu));
        if let Some(strange) = strange {
            let message = format!("`{}` is counted by another unit", quote(&strange.name));
            self.wrong(span.clone(), path, &message);
        }
        let mut whole = true;
        for (_, name) in formula
            .terms()
            .filter(|(_, name)| !events.contains_key(*name))
        {
            whole = false;
            self.mistakes.report(
                span.clone(),
                Some(path),
                format!("no event is called `{}`", quote(name)),
                did_you_mean(&closest(name, events.keys().map(String::as_str))),
            );
        }
        whole.then_some(formula)
    }
}
