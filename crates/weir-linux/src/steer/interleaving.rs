//! The system's weights of interleaving, changed for a measurement: through the same journal as all of
//! steering, so that `weir steer restore` restores them if a measurement was killed.

use std::path::Path;

use weir_model::capability::Unavailable;

use super::actuators::{KernelAccess, weights};
use super::journalled_writes::{JournalError, JournalledWrites, Restored};
use crate::root::Root;

/// Weights of nodes, changed for a time; a drop restores the earlier weights.
///
/// They are one setting of the whole system, and apply to pages that any program under weighted interleave
/// gets in the meantime.
#[derive(Debug)]
pub struct Interleaving(JournalledWrites);

impl Interleaving {
    /// Whether the kernel has them.
    ///
    /// # Errors
    /// Why not.
    pub fn availability(root: &Root) -> Result<(), Unavailable> {
        weights::find(root)
    }

    /// Sets the weight of each of some nodes, from 1 to 255, with the journal of a folder; also returns what
    /// an earlier process had left changed.
    ///
    /// # Errors
    /// The kernel has no weights, does not let this user set them, or another process steers this host;
    /// nothing has changed then.
    pub fn set(
        root: &Root,
        journal: &Path,
        weights: &[(u32, u32)],
    ) -> Result<(Self, Restored), Unavailable> {
        weights::find(root)?;
        let unavailable =
            |error: JournalError| Unavailable::because(format!("{error}; this needs root"));
        let (writes, restored) = JournalledWrites::open(root, journal).map_err(unavailable)?;
        Ok((Self::on(root, writes, weights)?, restored))
    }

    /// The same, with a journal that is open.
    pub(super) fn on(
        root: &Root,
        writes: JournalledWrites,
        weights: &[(u32, u32)],
    ) -> Result<Self, Unavailable> {
        let byte = |&(node, weight): &(u32, u32)| {
            let fits = u8::try_from(weight).ok().filter(|&weight| weight > 0);
            let fits = fits.map(|weight| (node, weight));
            fits.ok_or_else(|| Unavailable::because(format!("a weight is 1 to 255, not {weight}")))
        };
        let wanted = weights.iter().map(byte).collect::<Result<Vec<_>, _>>()?;
        let mut held = Self(writes);
        let mut access = KernelAccess {
            root,
            writes: &mut held.0,
            wrote: &mut Vec::new(),
        };
        let found = weights::set(&mut access, &wanted)?;
        if found == wanted {
            return Ok(held);
        }
        Err(Unavailable::because(format!(
            "the kernel changed the weights {wanted:?} to {found:?}"
        )))
    }

    /// Restores the earlier weights.
    ///
    /// # Errors
    /// A weight could not be restored; the others are restored all the same, and the journal keeps it.
    pub fn restore(mut self) -> Result<(), Unavailable> {
        let not: Vec<String> = self.0.release().iter().map(ToString::to_string).collect();
        if not.is_empty() {
            return Ok(());
        }
        Err(Unavailable::because(not.join("; ")))
    }
}

impl Drop for Interleaving {
    fn drop(&mut self) {
        // Callers that need to know what could not be restored call `restore`.
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Life, Machine, Paper, differences};
    use super::*;

    const FOLDER: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

    fn hold(
        machine: &Machine,
        life: &Life,
        paper: &Paper,
        weights: &[(u32, u32)],
    ) -> Result<Interleaving, Unavailable> {
        let root = machine.root(life);
        let (writes, _) = JournalledWrites::on(&root, Box::new(paper.held_by(life))).unwrap();
        Interleaving::on(&root, writes, weights)
    }

    #[test]
    fn weights_are_put_back_whatever_happens() {
        for auto in ["true\n", "false\n"] {
            let machine = Machine::new();
            machine.put(&format!("{FOLDER}/auto"), auto);
            let before = machine.tree();
            let whole = Life::default();
            let paper = Paper::default();
            let held = hold(&machine, &whole, &paper, &[(0, 3), (1, 1)]).unwrap();
            assert_eq!(machine.text(&format!("{FOLDER}/node0")), "3\n");
            assert_eq!(machine.text(&format!("{FOLDER}/auto")), "false\n");
            held.restore().unwrap();
            assert_eq!(differences(&before, &machine.tree()), [""; 0]);
            // The second is refused, so the first must be undone.
            for wrong in [(1, 256), (1, 0), (7, 1)] {
                hold(&machine, &whole, &paper, &[(0, 9), wrong]).unwrap_err();
                assert_eq!(differences(&before, &machine.tree()), [""; 0]);
            }
        }
    }

    #[test]
    fn who_is_killed_at_any_step_leaves_weights_that_are_restored() {
        let steps = {
            let (machine, life) = (Machine::new(), Life::default());
            drop(hold(&machine, &life, &Paper::default(), &[(0, 3), (1, 7)]));
            life.taken()
        };
        assert!(steps > 8, "{steps}");
        for step in 0..steps {
            let (machine, paper) = (Machine::new(), Paper::default());
            machine.put(&format!("{FOLDER}/auto"), "true\n");
            let before = machine.tree();
            let life = Life::until(Some(step));
            let root = machine.root(&life);
            if let Ok((writes, _)) = JournalledWrites::on(&root, Box::new(paper.held_by(&life))) {
                drop(Interleaving::on(&root, writes, &[(0, 3), (1, 7)]));
            }
            let after = Life::default();
            let (_, restored) =
                JournalledWrites::on(&machine.root(&after), Box::new(paper.held_by(&after)))
                    .unwrap();
            assert!(restored.is_whole(), "{step}: {:?}", restored.not);
            assert_eq!(differences(&before, &machine.tree()), [""; 0], "{step}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let empty = tempfile::tempdir().unwrap();
        let why = Interleaving::availability(&Root::at(empty.path())).unwrap_err();
        assert!(why.reason.contains("Linux 6.9"), "{}", why.reason);
        let folder = empty.path().join(FOLDER.trim_start_matches('/'));
        std::fs::create_dir_all(folder).unwrap();
        let why = Interleaving::availability(&Root::at(empty.path())).unwrap_err();
        assert!(why.reason.contains("node"), "{}", why.reason);
    }
}
