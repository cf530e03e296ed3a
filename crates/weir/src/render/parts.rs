//! Views of dots and of bars that are made of parts.

use serde_json::Value;
use weir_lab::view::{Scatter, Stacks};
use weir_model::frame::words;

use super::chart::{
    Cloud, Dot, Drawn, Look, ScatterChart, Stack, StackChart, Stretch, Strip, StripChart,
};
use super::groups;
use super::picture::Scene;

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
                .map_or(Look::solid(0), |row| self.look(&[shape.cloud], row)),
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
