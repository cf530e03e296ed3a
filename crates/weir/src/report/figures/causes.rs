//! The causes of slowdown, with the same colours in every chart, and bars made of them.

use weir_model::insight::Components;

use crate::report::chart::{Look, Stack};

/// A cause: its name, its colour, and its part.
type Cause = (&'static str, usize, fn(&Components) -> Option<f64>);

/// The causes in the order in which a request meets them. Colours next to each other differ in
/// lightness too.
const CAUSES: [Cause; 8] = [
    ("store", 3, |c| c.store),
    ("L1", 5, |c| c.l1),
    ("L2", 2, |c| c.l2),
    ("L3", 4, |c| c.l3),
    ("caches", 2, |c| c.cache),
    ("DRAM", 0, |c| c.dram),
    ("other", 6, |c| c.other),
    (UNTOLD, 7, |_| None),
];

/// What no cause is known for, for want of counters.
const UNTOLD: &str = "not told apart";

/// Numbers of the causes that breakdowns by level have; the caches together would count twice.
pub const LEVELS: [usize; 5] = [0, 1, 2, 3, 5];

/// Those of a whole slowdown by level.
const BY_LEVEL: [usize; 6] = [0, 1, 2, 3, 5, 6];

/// Those of predictions, which tell the caches no further apart.
const PREDICTED: [usize; 4] = [0, 4, 5, 6];

/// The parts that are known, of these causes.
pub fn parts(components: &Components, of: &[usize]) -> Vec<(usize, f64)> {
    let known = |&number: &usize| {
        let (_, _, part) = CAUSES.get(number)?;
        Some((number, part(components)?))
    };
    of.iter().filter_map(known).collect()
}

/// A slowdown by level. What its causes do not account for, for want of counters, is a part too.
pub fn by_level(name: String, components: &Components, slowdown: f64) -> Stack {
    whole(name, parts(components, &BY_LEVEL), slowdown)
}

/// A slowdown as predictions tell it.
pub fn as_predicted(name: String, components: &Components, slowdown: f64) -> Stack {
    whole(name, parts(components, &PREDICTED), slowdown)
}

fn whole(name: String, mut parts: Vec<(usize, f64)>, slowdown: f64) -> Stack {
    let rest = slowdown - parts.iter().map(|(_, length)| length).sum::<f64>();
    // A hundredth of a point is rounding.
    if rest.abs() > 0.01 {
        parts.push((CAUSES.len() - 1, rest));
    }
    Stack {
        name,
        parts,
        interval: None,
    }
}

/// The legend of the causes that occur, by whose numbers the parts are numbered anew.
pub fn legend<'a>(parts: impl Iterator<Item = &'a mut (usize, f64)>) -> Vec<(String, Look)> {
    let parts: Vec<&mut (usize, f64)> = parts.collect();
    let occurs = |number: &usize| parts.iter().any(|part| part.0 == *number);
    let used: Vec<usize> = (0..CAUSES.len()).filter(occurs).collect();
    for part in parts {
        part.0 = used.iter().position(|u| *u == part.0).unwrap_or(used.len());
    }
    let named = (used.iter()).filter_map(|&number| CAUSES.get(number));
    named
        .map(|&(name, colour, _)| (name.to_owned(), Look::solid(colour)))
        .collect()
}

/// The parts of all bars under headings.
pub fn of_groups(groups: &mut [(String, Vec<Stack>)]) -> impl Iterator<Item = &mut (usize, f64)> {
    let bars = groups.iter_mut().flat_map(|(_, bars)| bars);
    bars.flat_map(|bar| &mut bar.parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_that_do_not_occur_are_not_in_the_legend_and_a_rest_is() {
        let components = Components {
            dram: Some(20.0),
            l3: Some(-1.0),
            ..Components::default()
        };
        let bar = by_level("w".into(), &components, 25.0);
        let mut groups = vec![(String::new(), vec![bar])];
        let legend = legend(of_groups(&mut groups));
        let names: Vec<&str> = legend.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["L3", "DRAM", UNTOLD]);
        assert_eq!(groups[0].1[0].parts, [(0, -1.0), (1, 20.0), (2, 6.0)]);
    }
}
