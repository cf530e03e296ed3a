//! `--storage`: storage is touched where a user names it, and nowhere else.

use std::path::PathBuf;

use weir_linux::storage::Wish;
pub use weir_linux::storage::writes;

/// Arguments of the verbs that put requests to storage, or show it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Named {
    /// Storage of this machine, as tier ssd0: a folder, for a scratch file
    /// that goes with the run, or a block device, which is only read.
    #[arg(long, value_name = "PATH")]
    storage: Option<PathBuf>,
    /// The block device of --storage, named again to confirm that everything
    /// on it may be overwritten.
    #[arg(long, value_name = "DEVICE", requires = "storage")]
    write_device: Option<PathBuf>,
}

impl Named {
    /// What was named, if anything.
    pub fn wish(&self) -> Option<Wish> {
        let mut wish = Wish::at(self.storage.clone()?);
        wish.write.clone_from(&self.write_device);
        Some(wish)
    }
}
