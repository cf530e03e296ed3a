//! `weir doctor`: what would spoil a measurement or a tiering set-up, and the command that fixes it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use weir_linux::{doctor, recording};
use weir_model::diagnosis::{
    Diagnosis, DoctorDocument, Finding, RecordingNote, ScrubbedNote, Severity,
};

use crate::context::{Context, Format};
use crate::failure::{Failure, Result};
use crate::output::{print_as, to_csv, to_json, wrap};
use crate::system::{self, System};
use crate::verbs::topo::count;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir doctor
  weir doctor --format json | jq -r '.findings[].commands[]?'
  weir doctor --record my-server.machine       to send with a report
  weir doctor --on my-server.machine           the findings for a recording

Exit codes: 0 whenever it could look, whatever it found; 2 if the recording
cannot be read.")]
pub struct Args {
    /// Write a recording of the machine: every file that topo and doctor read, without names of computer,
    /// user and process, addresses and serial numbers. An existing file is not overwritten.
    #[arg(long, value_name = "FILE.machine")]
    pub record: Option<PathBuf>,
}

/// Examines the machine.
///
/// # Errors
/// The machine is a model, a recording cannot be read, or one cannot be written.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let on = &context.global.on;
    let Some(system) = system::find(on)? else {
        return Err(Failure::request(format!(
            "doctor examines a real system: this host, or a recording (FILE.machine); `{on}` is a model"
        )));
    };
    let recording = match &args.record {
        Some(file) => Some(record(file, &system)?),
        None => None,
    };
    let document = DoctorDocument {
        schema: DoctorDocument::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        kernel: system.view.kernel.known().cloned(),
        diagnosis: doctor::examine(&system.root, &system.view),
        machine: system.identity.clone(),
        recording,
    };
    print_as(
        context.global.format,
        &match context.global.format {
            Format::Json => to_json(&document)?,
            Format::Csv => to_csv(document.diagnosis.findings.iter().map(FindingRow::from))?,
            Format::Table => describe(&document, &system),
        },
    )
}

fn record(file: &Path, system: &System) -> Result<RecordingNote> {
    let name = file.display();
    if file.extension().is_none_or(|e| e != recording::EXTENSION) {
        return Err(Failure::request(format!(
            "--record: name the file {}, so that --on recognises it as a recording",
            file.with_extension(recording::EXTENSION).display()
        )));
    }
    let origin = if system.is_recorded() {
        format!(
            "Made by weir doctor --record from {}.",
            system.identity.name
        )
    } else {
        "Recorded by weir doctor --record.".to_owned()
    };
    let notes = [format!("{origin} Weir {}.", env!("CARGO_PKG_VERSION"))];
    let made = recording::make(&system.root, &notes);
    let mut written = File::create_new(file).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::request(format!("--record: {name} exists, and is not overwritten"))
        }
        io::ErrorKind::NotFound => {
            Failure::request(format!("cannot write the recording {name}: {error}"))
        }
        _ => Failure::work(format!("cannot write the recording {name}: {error}")),
    })?;
    written
        .write_all(made.text.as_bytes())
        .and_then(|()| written.sync_all())
        .with_context(|| format!("cannot write the recording {name}"))?;
    Ok(RecordingNote {
        file: name.to_string(),
        files: made.files,
        scrubbed: made
            .scrubbed
            .into_iter()
            .map(|s| ScrubbedNote {
                what: s.what,
                paths: s.paths,
            })
            .collect(),
    })
}

/// A finding as one row of CSV.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct FindingRow<'a> {
    severity: &'a str,
    rule: &'a str,
    spoils: &'a str,
    found: &'a str,
    evidence: String,
    effect: &'a str,
    commands: String,
    advice: &'a str,
}

impl<'a> From<&'a Finding> for FindingRow<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            severity: finding.severity.name(),
            rule: &finding.rule,
            spoils: finding.spoils.name(),
            found: &finding.found,
            evidence: evidence(finding),
            effect: &finding.effect,
            commands: finding.commands.join("; "),
            advice: &finding.advice,
        }
    }
}

fn evidence(finding: &Finding) -> String {
    let evidence = finding.evidence.iter();
    evidence
        .map(|e| format!("{}: {}", e.path, e.says))
        .collect::<Vec<_>>()
        .join("; ")
}

/// The document in at most 80 columns; commands are never wrapped, so that they can be pasted.
fn describe(document: &DoctorDocument, system: &System) -> String {
    let Diagnosis {
        findings,
        fine,
        unknown,
    } = &document.diagnosis;
    let what = if system.is_recorded() {
        "recorded machine"
    } else {
        "this machine"
    };
    let kernel = match &document.kernel {
        Some(release) => format!("Linux {release}"),
        None => "unknown kernel".to_owned(),
    };
    let severe = (findings.iter())
        .filter(|f| f.severity == Severity::Severe)
        .count();
    let mut text = wrap(
        &format!(
            "{} ({what}, {kernel}): {}, {severe} severe; {} rules found nothing, {} could not look",
            document.machine.name,
            count(findings.len(), "finding"),
            fine.len(),
            unknown.len()
        ),
        "",
        "  ",
    );
    for finding in findings {
        text.push('\n');
        text.push_str(&describe_finding(finding));
    }
    if !fine.is_empty() {
        text.push('\n');
        text.push_str(&wrap(&fine.join(", "), "fine    ", "        "));
    }
    for unknown in unknown {
        let line = format!("{}: {}", unknown.rule, unknown.reason);
        text.push_str(&wrap(&line, "unknown ", "        "));
    }
    if let Some(recording) = &document.recording {
        text.push('\n');
        text.push_str(&describe_recording(recording));
    }
    text
}

fn describe_finding(finding: &Finding) -> String {
    let Finding {
        rule,
        severity,
        spoils,
        found,
        effect,
        commands,
        advice,
        ..
    } = finding;
    let first = format!("{:<8}", severity.name());
    let indent = "        ";
    let mut text = wrap(
        &format!("{rule} ({}): {found}", spoils.name()),
        &first,
        indent,
    );
    for message in &finding.evidence {
        text.push_str(&wrap(
            &format!("{}: {}", message.path, message.says),
            &format!("{indent}seen:   "),
            &format!("{indent}        "),
        ));
    }
    text.push_str(&wrap(
        effect,
        &format!("{indent}effect: "),
        &format!("{indent}        "),
    ));
    for command in commands {
        let _ = writeln!(text, "{indent}mend:   {command}");
    }
    if !advice.is_empty() {
        text.push_str(&wrap(
            advice,
            &format!("{indent}advice: "),
            &format!("{indent}        "),
        ));
    }
    text
}

fn describe_recording(recording: &RecordingNote) -> String {
    let mut text = wrap(
        &format!("{} holds {} files", recording.file, recording.files),
        "wrote   ",
        "        ",
    );
    for scrubbed in &recording.scrubbed {
        let line = format!("{}, from {}", scrubbed.what, scrubbed.paths.join(", "));
        text.push_str(&wrap(&line, "scrubbed ", "        "));
    }
    text.push_str(&wrap(
        "the kernel's command line, disks, network, programs and environment were never read; read the file before you send it",
        "        ",
        "        ",
    ));
    text
}
