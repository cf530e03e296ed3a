//! The status socket: each client gets one document.

use std::fs;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use weir_steer::status::StatusDocument;

use crate::failure::{Failure, Result};

/// A client that reads slower than this is dropped.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest status.
const LONGEST: u64 = 16 << 20;

/// A socket that is removed on drop.
pub struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = fs::remove_file(&self.0);
    }
}

/// Sends the text of `text` to every client. Only the owner and the group may connect.
///
/// # Errors
/// Another process listens there, or the socket cannot be made.
pub fn serve(at: &Path, text: impl Fn() -> String + Send + 'static) -> io::Result<Socket> {
    if let Some(folder) = at.parent() {
        fs::create_dir_all(folder)?;
    }
    clear(at)?;
    let listener = UnixListener::bind(at)?;
    fs::set_permissions(at, fs::Permissions::from_mode(0o660))?;
    thread::Builder::new()
        .name("weir-status".into())
        .spawn(move || {
            for mut stream in listener.incoming().flatten() {
                // A client that disconnects, or does not read, loses its answer.
                let _ = stream
                    .set_write_timeout(Some(PATIENCE))
                    .and_then(|()| stream.write_all(text().as_bytes()));
            }
        })?;
    Ok(Socket(at.to_owned()))
}

/// Removes the socket of a process that has ended, and nothing else.
fn clear(at: &Path) -> io::Result<()> {
    let Ok(found) = fs::symlink_metadata(at) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        let why = format!("{} exists and is not a socket", at.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    if UnixStream::connect(at).is_ok() {
        let why = format!("another process listens at {}", at.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, why));
    }
    fs::remove_file(at)
}

/// Requests the status.
///
/// # Errors
/// No process listens there, or the answer is not a status.
pub fn ask(at: &Path) -> Result<StatusDocument> {
    let message = |error: io::Error| {
        let at = at.display();
        let what = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!(
                "the controller at {at} does not answer: its process is stopped, or finds no processor, and what it has \
                 limited stays so"
            ),
            io::ErrorKind::ConnectionRefused => format!(
                "the controller at {at} was killed; `weir steer restore` restores what it has left changed"
            ),
            _ => format!(
                "no controller answers at {at}; start `weir steer run`, or connect as a user who may"
            ),
        };
        Failure::Work(anyhow::Error::new(error).context(what))
    };
    let stream = UnixStream::connect(at).map_err(message)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(message)?;
    let mut text = String::new();
    stream
        .take(LONGEST)
        .read_to_string(&mut text)
        .map_err(message)?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::Work(
            anyhow::Error::new(error)
                .context(format!("the answer of {} is not a status", at.display())),
        )
    })
}
