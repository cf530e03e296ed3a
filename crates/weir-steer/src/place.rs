//! Which objects of a process go down to the slow tier and which come back up, window by window: pure decisions.
//!
//! An object goes down after it was cold for a number of windows in a row, and comes back once it is hot. Between cold and hot
//! nothing begins. An object that comes back soon has been moved for nothing: it has to be cold for twice as long the next time.
//! So whatever its heat does, in `T` windows it changes from down to up at most `T / (5 c) + log2(1 + T / c) + 1` times, where
//! `c` is [`Rules::cold_windows`], and each change moves no more than its bytes.

use std::collections::BTreeMap;

use weir_model::units::Bytes;

/// An object that is hot again within this many times the windows for which it had to be cold has gone down for nothing.
const REGRET: u64 = 4;
/// An object that was not seen for this many windows is forgotten.
const FORGET: u64 = 1000;

/// When objects move, and how much.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// With fewer touches of a page in a second an object is cold.
    pub cold: f64,
    /// With this many touches of a page in a second and more it is hot.
    pub hot: f64,
    /// For this many windows in a row it must be cold before it goes down, at least.
    pub cold_windows: u32,
    /// For this many windows in a row it must be hot before it comes back.
    pub hot_windows: u32,
    /// This much moves in a window, at most.
    pub most: Bytes,
    /// Nothing goes down once this much of the process is on the slow tier; without it all that is cold does.
    pub wanted: Option<Bytes>,
}

/// An object in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenObject {
    /// Its name.
    pub name: String,
    /// Its bytes on the fast tier.
    pub near: Bytes,
    /// Its bytes on the slow tier.
    pub far: Bytes,
    /// Touches of one of its pages in a second, on average; `None` where nothing was seen of it.
    pub heat: Option<f64>,
}

/// Memory of both tiers: what is free, or what was too little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Of the fast tier.
    pub near: Bytes,
    /// Of the slow tier.
    pub far: Bytes,
}

const NONE: Room = Room {
    near: Bytes(0),
    far: Bytes(0),
};

/// Where an object goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the slow tier.
    Down,
    /// To the fast tier.
    Up,
}

/// A part of an object that is to move in the next window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceStep {
    /// The object.
    pub object: String,
    /// Where it goes.
    pub way: Way,
    /// This much of it.
    pub bytes: Bytes,
}

#[derive(Debug, Clone)]
struct State {
    /// Windows in a row in which it was cold, and hot.
    cold: u32,
    hot: u32,
    /// The windows for which it must be cold.
    wait: u32,
    /// The window in which it went down last, until it is hot again.
    down: Option<u64>,
    seen: u64,
}

/// What has been seen of the objects of a process so far.
#[derive(Debug)]
pub struct PlaceController {
    rules: Rules,
    window: u64,
    states: BTreeMap<String, State>,
    lacked: Room,
}

impl PlaceController {
    /// Nothing was seen yet.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            window: 0,
            states: BTreeMap::new(),
            lacked: NONE,
        }
    }

    /// For how many windows an object must be cold before it goes down next.
    pub fn wait(&self, object: &str) -> u32 {
        let state = self.states.get(object);
        state.map_or(self.base(), |state| state.wait)
    }

    /// What would have moved after the last window, had the tiers had room for it.
    pub fn lacked(&self) -> Room {
        self.lacked
    }

    /// What moves after a window: first what is hot, the hottest first, then what is cold, the coldest first. Together no more
    /// than [`Rules::most`], nor than the tiers have room for.
    pub fn decide(&mut self, seen: &[SeenObject], room: Room) -> Vec<PlaceStep> {
        self.window += 1;
        seen.iter().for_each(|object| self.note(object));
        let window = self.window;
        (self.states).retain(|_, state| window - state.seen < FORGET);
        let mut left = self.rules.most.get();
        let (mut room, mut lacked) = (room, NONE);
        let mut far: u64 = seen.iter().map(|object| object.far.get()).sum();
        let mut steps = Vec::new();
        let heat = |object: &SeenObject| object.heat.unwrap_or(0.0);
        let mut order: Vec<&SeenObject> = seen.iter().collect();
        order.sort_by(|a, b| {
            (heat(b).total_cmp(&heat(a)))
                .then(a.near.cmp(&b.near))
                .then(a.name.cmp(&b.name))
        });
        for object in &order {
            let is_hot = (self.states.get(&object.name))
                .is_some_and(|state| state.hot >= self.rules.hot_windows.max(1));
            let ready = if is_hot {
                object.far.get().min(left)
            } else {
                0
            };
            let bytes = ready.min(room.near.get());
            lacked.near = Bytes(lacked.near.get() + ready - bytes);
            if bytes > 0 {
                left -= bytes;
                far -= bytes;
                room.near = Bytes(room.near.get() - bytes);
                steps.push(step(object, Way::Up, bytes));
            }
        }
        for object in order.iter().rev() {
            let wanted =
                (self.rules.wanted).map_or(u64::MAX, |wanted| wanted.get().saturating_sub(far));
            let Some(state) = self.states.get_mut(&object.name) else {
                continue;
            };
            let ready = match state.cold >= state.wait {
                true => object.near.get().min(left).min(wanted),
                false => 0,
            };
            let bytes = ready.min(room.far.get());
            lacked.far = Bytes(lacked.far.get() + ready - bytes);
            if bytes > 0 {
                left -= bytes;
                far += bytes;
                room.far = Bytes(room.far.get() - bytes);
                state.down = Some(self.window);
                steps.push(step(object, Way::Down, bytes));
            }
        }
        self.lacked = lacked;
        steps
    }

    /// Says that pages of an object stayed where they were: it is tried again after as many windows as the first time.
    pub fn stayed(&mut self, object: &str) {
        if let Some(state) = self.states.get_mut(object) {
            (state.cold, state.hot) = (0, 0);
        }
    }

    fn base(&self) -> u32 {
        self.rules.cold_windows.max(1)
    }

    fn note(&mut self, object: &SeenObject) {
        let (base, window) = (self.base(), self.window);
        let state = self.states.entry(object.name.clone()).or_insert(State {
            cold: 0,
            hot: 0,
            wait: base,
            down: None,
            seen: window,
        });
        state.seen = window;
        let is = |of: &dyn Fn(f64) -> bool| object.heat.is_some_and(of);
        let count = |before: u32, is: bool| if is { before.saturating_add(1) } else { 0 };
        state.cold = count(state.cold, is(&|heat| heat < self.rules.cold));
        state.hot = count(state.hot, is(&|heat| heat >= self.rules.hot));
        if state.hot < self.rules.hot_windows.max(1) {
            return;
        }
        if let Some(down) = state.down.take() {
            state.wait = match window - down <= REGRET * u64::from(state.wait) {
                true => state.wait.saturating_mul(2),
                false => (state.wait / 2).max(base),
            };
        }
    }
}

fn step(object: &SeenObject, way: Way, bytes: u64) -> PlaceStep {
    PlaceStep {
        object: object.name.clone(),
        way,
        bytes: Bytes(bytes),
    }
}
