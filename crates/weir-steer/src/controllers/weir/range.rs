//! Between what was too little and what was too much.

/// Windows after which what was too much is tried again: tenants change what they do.
const FORGET: u32 = 240;

/// Cores that draw less by this factor are others than those that were measured.
const SLOWER: f64 = 1.1;
/// More than something, by less than any hold differs from the next.
const NEXT: f64 = 1.001;

/// Where a hold is sought.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    little: f64,
    much: f64,
    /// What was measured to be too much, and is not forgotten, ...
    measured: f64,
    /// ... of cores that draw less than those it was measured with.
    most: f64,
    /// Whether something was tried that was too much.
    tried: bool,
    age: u32,
}

impl Range {
    /// Everything below what was measured to be too much, if it was, and below all `cores`: nobody was held,
    /// and that was too much.
    pub fn below(measured: Option<f64>, cores: f64) -> Self {
        let most = measured.unwrap_or(f64::INFINITY);
        Self {
            little: 0.0,
            much: cores,
            measured: most,
            most,
            tried: false,
            age: 0,
        }
    }

    /// A window passes.
    pub fn grow_older(&mut self) {
        self.age = self.age.saturating_add(1);
        if self.age > FORGET {
            *self = Self::below(Some(self.measured), f64::INFINITY);
        }
    }

    /// So much was too much.
    pub fn too_much(&mut self, units: f64) {
        self.much = self.much.min(units);
        if self.little >= units {
            self.little = 0.0;
        }
        self.tried = true;
        self.age = 0;
    }

    /// So much is right, and anything more was too much.
    pub fn just(&mut self, units: f64) {
        self.too_much(units * NEXT);
    }

    /// So much was too little.
    pub fn too_little(&mut self, units: f64) {
        self.little = self.little.max(units);
    }

    /// Cores draw so many times less than those with which it was measured what is too much.
    pub fn stretch(&mut self, factor: f64) {
        self.most = self.measured * if factor > SLOWER { factor } else { 1.0 };
    }

    /// Down to `to`, but not below the middle between what was too little and what is too much.
    pub fn narrower(&self, to: f64) -> f64 {
        if self.little > 0.0 {
            to.max(0.5 * (self.little + self.much.min(self.most)))
        } else {
            to
        }
    }

    /// Up to `to`; once something was too much, not above the middle between that and what was too little.
    pub fn wider(&self, to: f64) -> f64 {
        if self.tried {
            to.min(0.5 * (self.little + self.much))
        } else {
            to
        }
    }

    /// Whether so much was not found to be too much.
    pub fn has_room_for(&self, units: f64) -> bool {
        units < self.much.min(self.most)
    }
}
