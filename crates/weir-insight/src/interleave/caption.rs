//! Caption's tuner: a greedy climb with steps that are halved (MICRO 2023, Algorithm 1).
//!
//! It watches how well a workload runs, and sets how many of the next pages go to the slower tier for
//! each ten that stay local. It goes on in one direction while that helps, and back by half a step when
//! it does not. Pages that lie somewhere are never moved: history counts only where new pages were
//! placed since.
//!
//! The printed listing lost glyphs; the signs follow its comments and the public artefact, and so do the
//! bounds and steps. The artefact's absolute thresholds fit one scale of figures, so the dead band here
//! is relative to noise and a sudden change relative to the figure, unless the figure is the paper's.

use super::Weights;

/// What the tuner is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Pages that stay local in each round.
    pub local: u32,
    /// The fewest pages that go to the slower tier in each round.
    pub least: u32,
    /// The most.
    pub most: u32,
    /// How many go there first, and after a sudden change.
    pub first: u32,
    /// The first step, likewise.
    pub first_step: i32,
    /// The smallest step.
    pub least_step: i32,
    /// What changes are measured in; the figure before the change unless given.
    pub scale: Option<f64>,
    /// Changes below this much are none, even where the figure is known better.
    pub dead_band: f64,
    /// A change beyond this much is another phase of the workload.
    pub sudden: f64,
}

impl Settings {
    /// The artefact's, thresholds too: they are those of the paper's own
    /// [estimate](super::estimate), whose zero means nothing.
    pub fn of_estimate() -> Self {
        Self {
            scale: Some(1.0),
            dead_band: 0.2,
            sudden: 500.0,
            ..Self::default()
        }
    }
}

impl Default for Settings {
    /// The artefact's, with thresholds of ours.
    fn default() -> Self {
        Self {
            local: 10,
            least: 1,
            most: 20,
            first: 1,
            first_step: 3,
            least_step: 1,
            scale: None,
            dead_band: 0.002,
            sudden: 0.5,
        }
    }
}

/// How well the workload ran since the last tuning: the greater, the better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// The figure.
    pub mean: f64,
    /// Half-width of its interval.
    pub noise: f64,
}

/// What the tuner did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// Went on as before.
    Onward,
    /// Turned back by half a step.
    Back,
    /// Held still: the change is within the noise.
    Held,
    /// Began anew: the workload has changed.
    Reset,
}

/// The tuner.
#[derive(Debug, Clone, PartialEq)]
pub struct Caption {
    settings: Settings,
    history: History,
    slow: u32,
    did: Option<Did>,
}

/// What the next tuning is judged against.
#[derive(Debug, Clone, Copy, PartialEq)]
struct History {
    state: Option<State>,
    step: i32,
    slow: u32,
}

impl Caption {
    /// A tuner that has seen nothing.
    pub fn new(settings: Settings) -> Self {
        let slow = settings.first.clamp(settings.least, settings.most);
        Self {
            settings,
            history: History {
                state: None,
                step: settings.first_step,
                slow,
            },
            slow,
            did: None,
        }
    }

    /// The weights that new pages are placed by.
    pub fn weights(&self) -> Weights {
        Weights {
            local: self.settings.local,
            slow: self.slow,
        }
    }

    /// What it did last.
    pub fn did(&self) -> Option<Did> {
        self.did
    }

    /// Whether it has found a place: it holds still, or goes back and forth by the smallest step.
    pub fn is_settled(&self) -> bool {
        match self.did {
            Some(Did::Held) => true,
            Some(Did::Back) => self.history.step.abs() <= self.settings.least_step,
            _ => false,
        }
    }

    /// Takes the figure since the last tuning and gives the weights for the next pages. Where no page was
    /// placed since, the figure says nothing of the last weights, and history stays as it is.
    pub fn tune(&mut self, now: State, placed_pages: bool) -> Weights {
        let (did, step) = self.judge(now);
        let slow = match did {
            Did::Held => self.history.slow,
            Did::Reset => self.settings.first,
            Did::Onward | Did::Back => self.bounded(i64::from(self.history.slow) + i64::from(step)),
        };
        self.slow = self.bounded(slow.into());
        self.did = Some(did);
        if placed_pages {
            // What is held is still measured against what it was before, so that slow drifts add up.
            let state = match did {
                Did::Held => self.history.state,
                _ => Some(now),
            };
            self.history = History {
                state,
                step,
                slow: self.slow,
            };
        }
        self.weights()
    }

    fn judge(&self, now: State) -> (Did, i32) {
        let (settings, step) = (&self.settings, self.history.step);
        let Some(before) = self.history.state else {
            // The first figure counts as better than none.
            return (Did::Onward, step);
        };
        let change = now.mean - before.mean;
        let scale = settings.scale.unwrap_or(before.mean.abs());
        if change.abs() > settings.sudden * scale {
            return (Did::Reset, settings.first_step);
        }
        if change.abs() <= (settings.dead_band * scale).max(now.noise.hypot(before.noise)) {
            return (Did::Held, settings.least_step * step.signum());
        }
        if change > 0.0 {
            return (Did::Onward, step);
        }
        // Rounded towards zero after it was kept from vanishing.
        let half = -0.5 * f64::from(step);
        let kept = half.abs().max(f64::from(settings.least_step)).trunc();
        (Did::Back, kept.copysign(half) as i32)
    }

    fn bounded(&self, slow: i64) -> u32 {
        let (least, most) = (self.settings.least, self.settings.most);
        slow.clamp(least.into(), most.into()) as u32
    }
}
