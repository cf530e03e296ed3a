//! A file that is read often, and therefore stays open.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use weir_model::capability::Unavailable;

use crate::root::Root;

/// The longest file that is read each window.
const LONGEST: usize = 1 << 16;

/// A kernel's file, opened once.
#[derive(Debug)]
pub(crate) struct OpenFile {
    path: String,
    file: Option<File>,
}

impl OpenFile {
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            file: None,
        }
    }

    /// Its text, in a reused buffer.
    ///
    /// # Errors
    /// It cannot be read, or its group or process has gone.
    pub fn read<'b>(
        &mut self,
        root: &Root,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b str, Unavailable> {
        let length = self.fill(root, buffer).map_err(|error| {
            // A control group that was made again has other files under the same names.
            self.file = None;
            Unavailable::because(format!("{}: {error}", self.path))
        })?;
        std::str::from_utf8(&buffer[..length])
            .map_err(|_| Unavailable::because(format!("{} does not hold text", self.path)))
    }

    /// Reads it into the buffer, and returns the number of bytes.
    fn fill(&mut self, root: &Root, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(root.open(&self.path, false)?),
        };
        let mut length = 0;
        loop {
            if length == buffer.len() {
                if length >= LONGEST {
                    return Err(io::Error::other("it is too long"));
                }
                buffer.resize((2 * length).max(4096), 0);
            }
            match file.read_at(&mut buffer[length..], length as u64)? {
                0 => return Ok(length),
                more => length += more,
            }
        }
    }
}
