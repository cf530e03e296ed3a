//! What is open on every processor, while processors go online and offline.

use weir_model::capability::Unavailable;

use super::{Target, every_cpu};
use crate::root::Root;

/// Events of every processor that is online.
#[derive(Debug)]
pub(crate) struct OnEveryCpu<T> {
    cpus: Vec<Target>,
    /// The events.
    pub events: T,
}

impl<T> OnEveryCpu<T> {
    /// Opens them.
    ///
    /// # Errors
    /// The kernel does not list the processors, or refuses the events.
    pub fn open(
        root: &Root,
        open: impl FnOnce(&[Target]) -> Result<T, Unavailable>,
    ) -> Result<Self, Unavailable> {
        let cpus = every_cpu(root)?;
        let events = open(&cpus)?;
        Ok(Self { cpus, events })
    }

    /// Opens them again if other processors are online than before, once they have been read. If the kernel refuses,
    /// they stay as they are.
    pub fn follow(&mut self, root: &Root, open: impl FnOnce(&[Target]) -> Result<T, Unavailable>) {
        if every_cpu(root).is_ok_and(|cpus| cpus != self.cpus)
            && let Ok(again) = Self::open(root, open)
        {
            *self = again;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_opened_again_when_a_processor_goes_online() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&path).unwrap();
        let online = |cpus: &str| std::fs::write(path.join("online"), cpus).unwrap();
        let root = Root::at(folder.path());
        let opened = std::cell::Cell::new(0);
        let count = |cpus: &[Target]| {
            opened.set(opened.get() + 1);
            Ok(cpus.len())
        };
        online("0,2\n");
        let mut all = OnEveryCpu::open(&root, count).unwrap();
        all.follow(&root, count);
        assert_eq!((all.events, opened.get()), (2, 1));
        online("0-2\n");
        all.follow(&root, |_| Err(Unavailable::because("no")));
        assert_eq!(all.events, 2);
        all.follow(&root, count);
        assert_eq!((all.events, opened.get()), (3, 2));
        online("nonsense");
        all.follow(&root, count);
        assert_eq!((all.events, opened.get()), (3, 2));
    }
}
