//! The system's weights of interleaving, changed for a time.

use weir_model::capability::Unavailable;

use crate::root::Root;

/// Where the kernel keeps them: a file for each node, and since Linux 6.16 a switch by which it sets
/// them itself from bandwidths (Documentation/ABI/testing/sysfs-kernel-mm-mempolicy-weighted-interleave).
const FOLDER: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

/// Weights of nodes that are ours for now; dropping puts back what was there.
///
/// They are one setting of the whole system, and hold for pages that any program under weighted
/// interleave gets meanwhile.
#[derive(Debug)]
pub struct Weights {
    root: Root,
    /// Files and their text before, in the order in which they changed.
    before: Vec<(String, String)>,
}

impl Weights {
    /// Whether the kernel has them.
    ///
    /// # Errors
    /// Why not.
    pub fn availability(root: &Root) -> Result<(), Unavailable> {
        let nodes = root.numbered(FOLDER, "node");
        let found = nodes.get().map_err(|why| {
            let why =
                format!("the kernel has no weighted interleave, which came with Linux 6.9: {why}");
            Unavailable::because(why)
        })?;
        if found.is_empty() {
            let why = format!("{FOLDER} has the weight of no node");
            return Err(Unavailable::because(why));
        }
        Ok(())
    }

    /// Sets the weight of each of some nodes, from 1 to 255.
    ///
    /// # Errors
    /// The kernel has none, or does not let this user set them; nothing has changed then.
    pub fn hold(root: &Root, weights: &[(u32, u32)]) -> Result<Self, Unavailable> {
        Self::availability(root)?;
        let mut held = Self {
            root: root.clone(),
            before: Vec::new(),
        };
        // A weight that is written switches it off.
        let auto = format!("{FOLDER}/auto");
        if let Some(now) = root.text(&auto).known() {
            held.before.push((auto, now.clone()));
        }
        for (node, weight) in weights {
            let path = format!("{FOLDER}/node{node}");
            held.set(path, &weight.to_string())?;
        }
        Ok(held)
    }

    fn set(&mut self, path: String, text: &str) -> Result<(), Unavailable> {
        let now = self.root.text(&path).get()?.clone();
        let written = self.root.write(&path, text);
        written.map_err(|error| {
            Unavailable::because(format!("writing {text} to {path}: {error}; it takes root"))
        })?;
        self.before.push((path, now));
        Ok(())
    }

    /// Puts back what was there.
    ///
    /// # Errors
    /// A file cannot be written; the others are put back all the same.
    pub fn restore(mut self) -> Result<(), Unavailable> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), Unavailable> {
        let mut result = Ok(());
        // The switch comes last: it throws away weights that were set by hand.
        for (path, text) in self.before.drain(..).rev() {
            if path.ends_with("/auto") && text.trim() == "false" {
                continue;
            }
            let put = self.root.write(&path, text.trim());
            result = result.and(put.map_err(|error| {
                Unavailable::because(format!("putting {path} back to {}: {error}", text.trim()))
            }));
        }
        result
    }
}

impl Drop for Weights {
    fn drop(&mut self) {
        // Whoever wants to know of a failure calls `restore`.
        let _ = self.put_back();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::control::Control;

    /// A kernel that takes whatever is written to its files.
    #[derive(Debug)]
    struct Obedient(PathBuf);

    impl Control for Obedient {
        fn write(&self, path: &str, text: &str) -> io::Result<()> {
            if text == "256" {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            std::fs::write(self.0.join(path.trim_start_matches('/')), text)
        }

        fn make_folder(&self, _: &str) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn remove_folder(&self, _: &str) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join(FOLDER.trim_start_matches('/'));
        std::fs::create_dir_all(&base).unwrap();
        for (name, text) in files {
            std::fs::write(base.join(name), text).unwrap();
        }
        let kernel = Arc::new(Obedient(folder.path().to_owned()));
        let root = Root::at(folder.path()).obeyed_by(kernel);
        (folder, root)
    }

    fn all(root: &Root) -> Vec<String> {
        let names = root.list(FOLDER).known().cloned().unwrap_or_default();
        let text = |name: &String| {
            let text = root.text(&format!("{FOLDER}/{name}"));
            format!("{name} {}", text.known().map_or("", |text| text.trim()))
        };
        names.iter().map(text).collect()
    }

    #[test]
    fn weights_are_put_back_whatever_happens() {
        for auto in ["true\n", "false\n"] {
            let files = [("auto", auto), ("node0", "5\n"), ("node1", "2\n")];
            let (_folder, root) = system(&files);
            let before = all(&root);
            let held = Weights::hold(&root, &[(0, 3), (1, 1)]).unwrap();
            assert!(all(&root).contains(&"node0 3".to_owned()));
            held.restore().unwrap();
            assert_eq!(all(&root), before);
            // The second is refused, and so the first must go.
            Weights::hold(&root, &[(0, 9), (1, 256)]).unwrap_err();
            assert_eq!(all(&root), before);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let (_folder, root) = system(&[]);
        let why = Weights::availability(&root).unwrap_err();
        assert!(why.reason.contains("no node"), "{}", why.reason);
        let empty = tempfile::tempdir().unwrap();
        let why = Weights::hold(&Root::at(empty.path()), &[(0, 1)]).unwrap_err();
        assert!(why.reason.contains("Linux 6.9"), "{}", why.reason);
        let (_folder, root) = system(&[("node0", "1\n")]);
        let why = Weights::hold(&root, &[(1, 1)]).unwrap_err();
        assert!(why.reason.contains("node1"), "{}", why.reason);
    }
}
