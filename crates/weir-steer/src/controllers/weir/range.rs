//! The range between limits that were too narrow and limits that were too wide.

/// A factor above one, smaller than the difference between any two limits.
const NEXT: f64 = 1.001;

/// The range in which a limit is searched.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    little: f64,
    much: f64,
    /// The width that was measured as too wide; it is never forgotten.
    measured: f64,
    /// How many times less the present cores draw than those of that measurement.
    most: f64,
    /// Whether a limit was tried that was too wide.
    tried: bool,
    /// Whether a narrower limit brought the fast tier nothing.
    narrowest: bool,
    age: u32,
}

impl Range {
    /// Everything below the width that was measured as too wide, if there is one, and below all `cores`:
    /// without a limit it was too wide.
    pub fn below(measured: Option<f64>, cores: f64) -> Self {
        let most = measured.unwrap_or(f64::INFINITY);
        Self {
            little: 0.0,
            much: cores,
            measured: most,
            most,
            tried: false,
            narrowest: false,
            age: 0,
        }
    }

    /// A window passes; what was found is forgotten after `forget` of them.
    pub fn grow_older(&mut self, forget: u32) {
        self.age = self.age.saturating_add(1);
        if self.age > forget {
            *self = Self::below(Some(self.measured), f64::INFINITY);
        }
    }

    /// This was too wide.
    pub fn too_much(&mut self, units: f64) {
        self.much = self.much.min(units);
        if self.little >= units {
            self.little = 0.0;
        }
        self.tried = true;
        self.age = 0;
    }

    /// This is right, and anything wider was too wide.
    pub fn just(&mut self, units: f64) {
        self.too_much(units * NEXT);
    }

    /// This was too narrow.
    pub fn too_little(&mut self, units: f64) {
        self.little = self.little.max(units);
    }

    /// This was too narrow, and what is wider brought the fast tier as much.
    pub fn narrowest(&mut self, units: f64) {
        self.too_little(units);
        self.narrowest = true;
    }

    /// Whether a narrower limit may bring the fast tier something.
    pub fn may_narrow(&self) -> bool {
        !self.narrowest
    }

    /// The cores draw this many times less than those with which the too-wide limit was measured, which
    /// matters from `slower` on.
    pub fn stretch(&mut self, factor: f64, slower: f64) {
        self.most = self.measured * if factor > slower { factor } else { 1.0 };
    }

    /// Down from `units` to `to`, but not below the middle of the range up to `units`.
    pub fn narrower(&self, units: f64, to: f64) -> f64 {
        if self.little > 0.0 {
            to.max(0.5 * (self.little + units.min(self.much).min(self.most)))
        } else {
            to
        }
    }

    /// Up to `to`; once a limit was too wide, not above the middle of the range.
    pub fn wider(&self, to: f64) -> f64 {
        if self.tried {
            to.min(0.5 * (self.little + self.much))
        } else {
            to
        }
    }

    /// Whether this was not found to be too wide.
    pub fn has_room_for(&self, units: f64) -> bool {
        units < self.much.min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrower_limit_is_between_the_one_that_was_too_narrow_and_the_present_one() {
        let mut range = Range::below(None, 15.0);
        range.too_little(1.0);
        assert!((range.narrower(2.4, 1.2) - 1.7).abs() < 1e-12);
        assert!((range.narrower(2.4, 2.2) - 2.2).abs() < 1e-12);
    }

    #[test]
    fn that_narrower_limits_bring_nothing_is_forgotten() {
        let mut range = Range::below(None, 15.0);
        range.narrowest(1.0);
        let mut may_narrow = || {
            range.grow_older(2);
            range.may_narrow()
        };
        assert_eq!([(); 3].map(|()| may_narrow()), [false, false, true]);
    }
}
