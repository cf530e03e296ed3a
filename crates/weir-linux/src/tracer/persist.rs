//! What a command stores into a pool, flushes and fences, as text, which a plugin of QEMU's user mode reports (`persist/plugin.c`).

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{Tracer, emulator, plugin};

const PLUGIN: &str = include_str!("persist/plugin.c");
const OPCODES: &str = include_str!("persist/opcodes.h");
const CALLS: &str = include_str!("persist/calls.h");

/// Why nothing can be recorded here, with what installs it; `None` where it can.
pub fn missing() -> Option<String> {
    match std::env::consts::ARCH {
        "x86_64" => Tracer::Qemu.missing(),
        other => Some(format!(
            "what a program flushes is only known on x86-64, and this is {other}"
        )),
    }
}

/// The command under the plugin, which writes to the descriptor [`super::super::piped::RECORDS`]. Both files have their whole paths
/// without links. What is in the folder must stay while it runs.
///
/// # Errors
/// The plugin cannot be compiled.
pub fn command(
    program: &Path,
    words: &[String],
    pool: &Path,
    folder: &TempDir,
) -> io::Result<Command> {
    let names = format!(
        "#define POOL \"{}\"\n#define PROGRAM \"{}\"\n",
        quoted(pool),
        quoted(program)
    );
    let files = [
        ("plugin.c", PLUGIN),
        ("opcodes.h", OPCODES),
        ("calls.h", CALLS),
        ("names.h", &names),
    ];
    let library = plugin(folder.path(), &files)?;
    let mut command = Command::new(emulator());
    command.args(["-cpu", "max", single()?, "-plugin"]);
    command.arg(library);
    if let Some(name) = words.first() {
        command.args(["-0", name]);
    }
    command.arg(program).args(words.iter().skip(1));
    Ok(command)
}

/// The option by which QEMU translates one instruction at a time; it has a new name since version 8.1.
fn single() -> io::Result<&'static str> {
    let help = Command::new(emulator())
        .arg("--help")
        .stdin(Stdio::null())
        .output()?;
    let help = String::from_utf8_lossy(&help.stdout);
    Ok(match help.contains("-one-insn-per-tb") {
        true => "-one-insn-per-tb",
        false => "-singlestep",
    })
}

/// A path within a string of C.
fn quoted(path: &Path) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let bytes = path.as_os_str().as_bytes().iter();
    bytes
        .map(|byte| match plain(byte) {
            true => char::from(*byte).to_string(),
            false => format!("\\{byte:03o}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_a_path_ends_a_string_of_c() {
        assert_eq!(
            quoted(Path::new("/a b/\"\\?.x")),
            "/a\\040b/\\042\\134\\077.x"
        );
    }
}
