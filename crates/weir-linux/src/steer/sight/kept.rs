//! A file that is read again and again, and so stays open.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use weir_model::capability::Unavailable;

use crate::root::Root;

/// No file that is read each window is longer.
const LONGEST: usize = 1 << 16;

/// A kernel's file, opened once.
#[derive(Debug)]
pub(crate) struct Kept {
    path: String,
    file: Option<File>,
}

impl Kept {
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            file: None,
        }
    }

    /// Its text, in a buffer that is used again.
    ///
    /// # Errors
    /// It cannot be read, or what it is about has gone.
    pub fn read<'b>(
        &mut self,
        root: &Root,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b str, Unavailable> {
        if let Err(error) = self.fill(root, buffer) {
            // A control group that was made anew has other files under the same names.
            self.file = None;
            return Err(Unavailable::because(format!("{}: {error}", self.path)));
        }
        std::str::from_utf8(buffer)
            .map_err(|_| Unavailable::because(format!("{} does not hold text", self.path)))
    }

    fn fill(&mut self, root: &Root, buffer: &mut Vec<u8>) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(root.open(&self.path, false)?),
        };
        buffer.resize(LONGEST, 0);
        let mut length = 0;
        while length < LONGEST {
            match file.read_at(&mut buffer[length..], length as u64)? {
                0 => break,
                more => length += more,
            }
        }
        buffer.truncate(length);
        Ok(())
    }
}
