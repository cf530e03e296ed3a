//! Views of dots, of lines across axes, and of bars that are made of parts.

use serde_json::Value;
use weir_lab::view::{Parallel, Scatter, Stacks};
use weir_model::frame::words;

use super::chart::{
    Across, Cloud, Dot, Drawn, Look, ParallelChart, ScatterChart, Stack, StackChart, Stretch,
    Strip, StripChart, Stroke, Vertical,
};
use super::picture::Scene;
use super::{distinct, groups};

impl Scene<'_> {
    pub(super) fn scatter(&self, title: &str, shape: &Scatter, rows: &[&[Value]]) -> Option<Drawn> {
        let dot = |row: &[Value]| {
            Some(Dot {
                name: words(self.frame.cell(row, shape.name)),
                x: self.number(row, shape.x)?,
                y: self.number(row, shape.y)?,
                interval: self.ends(shape.ends, row),
            })
        };
        let clouds = groups(&[shape.cloud], self.frame, rows).into_iter();
        let clouds = clouds.map(|(key, own)| Cloud {
            name: self.name(&[shape.cloud], rows, &key),
            look: own
                .first()
                .map_or(Look::solid(0), |row| self.look(&[shape.cloud], row, rows)),
            dots: own.iter().filter_map(|row| dot(row)).collect(),
        });
        let clouds: Vec<Cloud> = clouds.filter(|cloud| !cloud.dots.is_empty()).collect();
        let chart = ScatterChart {
            label: format!("{title} on {}", self.machine),
            x_title: shape.x_title.clone(),
            y_title: shape.y_title.clone(),
            bands: shape.bands.to_vec(),
            clouds,
        };
        (!chart.clouds.is_empty()).then(|| Drawn::new(title, chart))
    }

    pub(super) fn parallel(
        &self,
        title: &str,
        shape: &Parallel,
        rows: &[&[Value]],
    ) -> Option<Drawn> {
        /// Lines that are drawn of each kind but the first: more hide one another.
        const MOST: usize = 200;
        let columns = || {
            shape
                .axes
                .iter()
                .filter_map(|name| Some((name, self.frame.place(name)?)))
        };
        let drawn = rows
            .iter()
            .filter(|row| columns().any(|(_, at)| row.get(at).is_some_and(|v| !v.is_null())));
        let drawn: Vec<&[Value]> = drawn.copied().collect();
        let known = columns().map(|(name, at)| {
            let values = || {
                drawn
                    .iter()
                    .filter_map(move |row| row.get(at))
                    .filter(|value| !value.is_null())
            };
            let words = match values().all(Value::is_number) {
                true => Vec::new(),
                false => distinct(values().cloned()),
            };
            (name, at, words)
        });
        // An axis without a value has no ends.
        let known: Vec<(&String, usize, Vec<Value>)> = known
            .filter(|(_, at, _)| {
                drawn
                    .iter()
                    .any(|row| row.get(*at).is_some_and(|v| !v.is_null()))
            })
            .collect();
        let axes = known.iter().map(|(name, at, of_words)| {
            let unit = self
                .frame
                .columns
                .get(*at)
                .map_or("", |column| column.unit.as_str());
            let name = match unit {
                "" => (*name).clone(),
                unit => format!("{} ({unit})", name.trim_end_matches("_ns")),
            };
            Vertical {
                title: name,
                words: of_words.iter().map(words).collect(),
            }
        });
        let axes: Vec<Vertical> = axes.collect();
        let mut legend = Vec::new();
        let mut lines = Vec::new();
        for (key, own) in groups(&[shape.kind], self.frame, &drawn) {
            let Some(first) = own.first() else { continue };
            let kind = key.first().map(words).unwrap_or_default();
            let look = self.look(&[shape.kind], first, &drawn);
            let stroke = if look.colour == 0 {
                Stroke::Solid
            } else {
                Stroke::Dotted
            };
            let look = Look { stroke, ..look };
            let most = if look.is_solid() { usize::MAX } else { MOST };
            legend.push((kind.clone(), look));
            let across = |row: &&[Value]| Across {
                name: words(self.frame.cell(row, shape.name)),
                kind: kind.clone(),
                look,
                at: (known.iter())
                    .map(|(_, at, words)| {
                        let value = row.get(*at)?;
                        match words.is_empty() {
                            true => value.as_f64(),
                            false => Some(words.iter().position(|word| word == value)? as f64),
                        }
                    })
                    .collect(),
            };
            lines.extend(own.iter().take(most).map(across));
        }
        // Full lines are drawn last, on top of the others.
        lines.sort_by_key(|line| line.look.is_solid());
        let chart = ParallelChart {
            label: format!("{title} on {}", self.machine),
            axes,
            lines,
            legend,
            name_title: shape.name.to_owned(),
        };
        (!chart.lines.is_empty() && chart.axes.len() > 1).then(|| Drawn::new(title, chart))
    }

    pub(super) fn stacks(&self, title: &str, shape: &Stacks, rows: &[&[Value]]) -> Option<Drawn> {
        // Parts that no row has are not in the legend.
        let used: Vec<_> = (shape.parts.iter())
            .filter(|part| {
                rows.iter()
                    .any(|row| self.number(row, part.column).is_some())
            })
            .collect();
        let legend = used
            .iter()
            .map(|part| (part.name.to_owned(), Look::solid(part.colour)));
        let legend: Vec<(String, Look)> = legend.collect();
        let parts = |row: &[Value]| -> Vec<(usize, f64)> {
            let parts = used.iter().enumerate();
            parts
                .filter_map(|(at, part)| Some((at, self.number(row, part.column)?)))
                .collect()
        };
        let name = |row: &[Value]| words(self.frame.cell(row, shape.bar));
        let by: Vec<&str> = (shape.group.iter().copied())
            .filter(|column| self.frame.place(column).is_some())
            .collect();
        let grouped = groups(&by, self.frame, rows).into_iter();
        let grouped = grouped.map(|(key, own)| {
            let key: Vec<String> = key.iter().map(words).collect();
            (key.join(": "), own)
        });
        let label = format!("{title} on {}", self.machine);
        if let Some((length, x_title)) = shape.length {
            let strips = grouped.map(|(name_of, own)| Strip {
                name: format!("on {name_of}"),
                stretches: (own.iter())
                    .map(|row| Stretch {
                        name: name(row),
                        length: self.number(row, length).unwrap_or(0.0),
                        parts: parts(row),
                    })
                    .collect(),
            });
            let chart = StripChart {
                label,
                x_title: x_title.to_owned(),
                y_title: shape.title.clone(),
                legend,
                strips: strips.collect(),
            };
            return (!chart.strips.is_empty()).then(|| Drawn::new(title, chart));
        }
        let stacks = grouped.map(|(heading, own)| {
            let stack = |row: &&[Value]| Stack {
                name: name(row),
                parts: parts(row),
                interval: self.ends(shape.ends, row),
            };
            (heading, own.iter().map(stack).collect())
        });
        let chart = StackChart {
            label,
            title: shape.title.clone(),
            legend,
            groups: stacks.collect(),
        };
        (!chart.groups.is_empty()).then(|| Drawn::new(title, chart))
    }

    /// The ends of the interval of a row's figure.
    fn ends(&self, columns: Option<[&str; 2]>, row: &[Value]) -> Option<[f64; 2]> {
        let [low, high] = columns?;
        Some([self.number(row, low)?, self.number(row, high)?])
    }
}
