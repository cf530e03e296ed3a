//! Laws of the controller that keeps objects on their tiers: whatever the heat of objects does, little is moved.

use proptest::prelude::*;
use weir_model::units::Bytes;
use weir_steer::place::{PlaceController, PlaceStep, Room, Rules, SeenObject, Way};

const MIB: u64 = 1 << 20;

fn rules(cold_windows: u32, hot_windows: u32, most: u64) -> Rules {
    Rules {
        cold: 0.01,
        hot: 0.1,
        cold_windows,
        hot_windows,
        most: Bytes(most),
        wanted: None,
    }
}

const WIDE: Room = Room {
    near: Bytes(u64::MAX),
    far: Bytes(u64::MAX),
};

/// Objects of a process, which move as they are asked to.
struct Plant {
    controller: PlaceController,
    objects: Vec<SeenObject>,
    down: Vec<u64>,
    up: Vec<u64>,
    /// Times that an object began to come back.
    turns: Vec<u64>,
    last: Vec<Option<Way>>,
}

impl Plant {
    fn new(rules: Rules, sizes: &[u64]) -> Self {
        let object = |(number, size): (usize, &u64)| SeenObject {
            name: format!("object {number}"),
            near: Bytes(*size),
            far: Bytes(0),
            heat: None,
        };
        Self {
            controller: PlaceController::new(rules),
            objects: sizes.iter().enumerate().map(object).collect(),
            down: vec![0; sizes.len()],
            up: vec![0; sizes.len()],
            turns: vec![0; sizes.len()],
            last: vec![None; sizes.len()],
        }
    }

    fn window(&mut self, heat: &[f64], room: Room) -> Vec<PlaceStep> {
        for (object, heat) in self.objects.iter_mut().zip(heat) {
            object.heat = Some(*heat);
        }
        let steps = self.controller.decide(&self.objects, room);
        for step in &steps {
            let at = self.objects.iter().position(|one| one.name == step.object);
            let at = at.unwrap();
            let (object, bytes) = (&mut self.objects[at], step.bytes.get());
            let (near, far) = (object.near.get(), object.far.get());
            (object.near, object.far) = match step.way {
                Way::Down => (Bytes(near - bytes), Bytes(far + bytes)),
                Way::Up => (Bytes(near + bytes), Bytes(far - bytes)),
            };
            match step.way {
                Way::Down => self.down[at] += bytes,
                Way::Up => self.up[at] += bytes,
            }
            self.turns[at] += u64::from((self.last[at], step.way) == (Some(Way::Down), Way::Up));
            self.last[at] = Some(step.way);
        }
        steps
    }

    fn far(&self) -> u64 {
        self.objects.iter().map(|object| object.far.get()).sum()
    }
}

/// The most changes from down to up in this many windows.
fn bound(windows: u64, cold_windows: u32) -> f64 {
    let (t, c) = (windows as f64, f64::from(cold_windows));
    t / (5.0 * c) + (1.0 + t / c).log2() + 1.0
}

const HEAT: [f64; 3] = [0.0, 0.05, 5.0];

/// An enemy that makes an object hot as soon as it is down, after `late` more windows, and cold as soon as it is up.
fn enemy(cold_windows: u32, late: u64, windows: u64) -> Plant {
    let mut plant = Plant::new(rules(cold_windows, 1, u64::MAX), &[64 * MIB]);
    let mut since = 0;
    for _ in 0..windows {
        let is_down = plant.far() > 0;
        since = if is_down { since + 1 } else { 0 };
        let heat = if since > late { 5.0 } else { 0.0 };
        plant.window(&[heat], WIDE);
    }
    plant
}

proptest! {
    #[test]
    fn whatever_the_heat_does_what_moves_is_bounded(
        sizes in prop::collection::vec(1_u64..200, 1..4), cold_windows in 1_u32..12, hot_windows in 1_u32..4,
        most in 1_u64..400, runs in prop::collection::vec((0_usize..3, 0_usize..3, 0_usize..3, 1_u64..40), 1..120),
    ) {
        let sizes: Vec<u64> = sizes.iter().map(|size| size * MIB).collect();
        let mut plant = Plant::new(rules(cold_windows, hot_windows, most * MIB), &sizes);
        let mut windows = 0;
        for (a, b, c, long) in runs {
            for _ in 0..long {
                windows += 1;
                let steps = plant.window(&[HEAT[a], HEAT[b], HEAT[c]], WIDE);
                let moved: u64 = steps.iter().map(|step| step.bytes.get()).sum();
                prop_assert!(moved <= most * MIB);
                for step in &steps {
                    let heat = plant.objects.iter().find(|one| one.name == step.object).unwrap().heat.unwrap();
                    let is_right = match step.way { Way::Down => heat < 0.01, Way::Up => heat >= 0.1 };
                    prop_assert!(is_right);
                }
            }
        }
        for (at, size) in sizes.iter().enumerate() {
            let turns = bound(windows, cold_windows);
            prop_assert!(plant.turns[at] as f64 <= turns, "{} of {turns}", plant.turns[at]);
            prop_assert!((plant.down[at] + plant.up[at]) as f64 <= 2.0 * *size as f64 * (turns + 1.0));
        }
    }

    #[test]
    fn an_enemy_that_knows_the_rules_gains_little(cold_windows in 1_u32..40, late in 0_u64..400, windows in 1_u64..6000) {
        let plant = enemy(cold_windows, late, windows);
        let turns = bound(windows, cold_windows);
        prop_assert!(plant.turns[0] as f64 <= turns, "{} of {turns}", plant.turns[0]);
    }

    #[test]
    fn neither_tier_is_filled_beyond_its_room_nor_the_slow_one_beyond_what_is_wanted(
        sizes in prop::collection::vec(1_u64..200, 3), near in 0_u64..300, far in 0_u64..300, wanted in 0_u64..500,
        heat in prop::collection::vec((0_usize..3, 0_usize..3, 0_usize..3), 1..200),
    ) {
        let sizes: Vec<u64> = sizes.iter().map(|size| size * MIB).collect();
        let wanted = Bytes(wanted * MIB);
        let mut plant = Plant::new(Rules { wanted: Some(wanted), ..rules(2, 1, 70 * MIB) }, &sizes);
        let room = Room { near: Bytes(near * MIB), far: Bytes(far * MIB) };
        for (a, b, c) in heat {
            let steps = plant.window(&[HEAT[a], HEAT[b], HEAT[c]], room);
            let sum = |way| steps.iter().filter(|step| step.way == way).map(|step| step.bytes.get()).sum::<u64>();
            prop_assert!(sum(Way::Up) <= room.near.get() && sum(Way::Down) <= room.far.get());
            prop_assert!(plant.far() <= wanted.get());
        }
    }

    #[test]
    fn heat_that_stays_ends_all_moves(heat in prop::collection::vec(0_usize..3, 3)) {
        let mut plant = Plant::new(rules(3, 2, 50 * MIB), &[64 * MIB, 200 * MIB, MIB]);
        let heat: Vec<f64> = heat.into_iter().map(|at| HEAT[at]).collect();
        (0..40).for_each(|_| drop(plant.window(&heat, WIDE)));
        prop_assert_eq!(plant.window(&heat, WIDE), []);
        for (object, heat) in plant.objects.iter().zip(&heat) {
            prop_assert_eq!(object.near.get() == 0, *heat < 0.01);
        }
    }
}

/// Without the longer wait an enemy would turn an object round every twelve windows: 500 times.
#[test]
fn an_object_that_comes_back_at_once_is_left_alone_for_longer_and_longer() {
    let plant = enemy(10, 0, 6000);
    assert!(plant.turns[0] <= 10, "{}", plant.turns[0]);
    assert!(plant.controller.wait("object 0") >= 640);
}

#[test]
fn the_coldest_goes_first_and_the_hottest_comes_back_first() {
    let mut plant = Plant::new(rules(2, 1, 100 * MIB), &[64 * MIB, 64 * MIB, 64 * MIB]);
    let heat = [0.004, 0.0, 1.0];
    assert_eq!(plant.window(&heat, WIDE), []);
    let steps = plant.window(&heat, WIDE);
    let of = |steps: &[PlaceStep]| -> Vec<(String, u64)> {
        let one = |step: &PlaceStep| (step.object.clone(), step.bytes.get() / MIB);
        steps.iter().map(one).collect()
    };
    assert_eq!(
        of(&steps),
        [("object 1".into(), 64), ("object 0".into(), 36)]
    );
    assert_eq!(of(&plant.window(&heat, WIDE)), [("object 0".into(), 28)]);
    let steps = plant.window(&[1.0, 2.0, 0.0], WIDE);
    assert_eq!(
        of(&steps),
        [("object 1".into(), 64), ("object 0".into(), 36)]
    );
}

#[test]
fn what_finds_no_room_is_told_for_either_tier() {
    let mut plant = Plant::new(rules(2, 1, 100 * MIB), &[64 * MIB, 64 * MIB]);
    let full = Room {
        near: Bytes(4 * MIB),
        far: Bytes(60 * MIB),
    };
    let lacked = |plant: &Plant| {
        let Room { near, far } = plant.controller.lacked();
        [near, far].map(|bytes| bytes.get() / MIB)
    };
    plant.window(&[0.0, 0.0], full);
    assert_eq!(lacked(&plant), [0, 0], "nothing is cold for long enough");
    plant.window(&[0.0, 1.0], full);
    assert_eq!(lacked(&plant), [0, 4]);
    plant.window(&[1.0, 0.0], full);
    assert_eq!(lacked(&plant), [56, 0]);
    plant.window(&[1.0, 0.05], WIDE);
    assert_eq!(lacked(&plant), [0, 0]);
}

#[test]
fn what_stays_is_tried_again_later_and_not_in_each_window() {
    let mut controller = PlaceController::new(rules(3, 1, 100 * MIB));
    let pinned = SeenObject {
        name: "pinned".into(),
        near: Bytes(MIB),
        far: Bytes(0),
        heat: Some(0.0),
    };
    let mut tried = 0;
    for _ in 0..12 {
        if !controller
            .decide(std::slice::from_ref(&pinned), WIDE)
            .is_empty()
        {
            tried += 1;
            controller.stayed("pinned");
        }
    }
    assert_eq!(tried, 4);
}
