//! What is printed of a pool of namespaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::Bytes;
use weir_namespace::{Entry, Life, Pool, Table as Segments};

use crate::context::{Context, Format};
use crate::failure::{Failure, Result};
use crate::output::{Column, Table, print_as, to_csv, to_json, wrap};

/// A `namespaces` document: `weir/namespaces/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamespacesDocument {
    /// `weir/KIND/VERSION`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// The device or file.
    pub pool: String,
    /// The number of the pool.
    pub uuid: String,
    /// What it is on, and what that means.
    pub medium: String,
    /// What offsets and sizes are multiples of, in bytes.
    pub unit_bytes: u64,
    /// Bytes of namespaces, used and free.
    pub capacity_bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Bytes of the largest free range, which is the largest namespace that can be made.
    pub largest_free_bytes: u64,
    /// How long a host may show no sign of life before it counts as dead, in seconds.
    pub lease_s: f64,
    /// The hosts that are admitted.
    pub hosts: Vec<NamespaceHost>,
    /// What this command did, in words.
    pub did: Vec<String>,
    /// The namespaces, or the one that was named, and ranges that are being scrubbed.
    pub namespaces: Vec<NamespaceLine>,
    /// Which processes have them open.
    pub handles: Vec<NamespaceHandle>,
}

/// A host of a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamespaceHost {
    /// Its name.
    pub name: String,
    /// Seconds since its last sign of life; absent if it has never come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_s: Option<f64>,
    /// Whether that is within the lease.
    pub alive: bool,
}

/// A range of a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamespaceLine {
    /// Its name.
    pub name: String,
    /// Where it begins in the device or file, in bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// `live`, or `scrubbing` for a range that is not yet free again.
    pub state: String,
    /// The host that owns it.
    pub owner: String,
    /// Other hosts that may open it, with commas.
    pub hosts: String,
    /// The user who owns it.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Permission bits in octal.
    pub mode: String,
    /// Grows when it gets another owner or another place.
    pub generation: u64,
    /// How long it is kept: `kept`, `process PID of HOST`, or `until MS` since 1970.
    pub kept: String,
    /// How many handles are open.
    pub references: u64,
}

/// A handle of a namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamespaceHandle {
    /// The namespace.
    pub namespace: String,
    /// The host of the process.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// Whether it may write.
    pub write: bool,
}

impl NamespacesDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/namespaces/1";
}

/// Prints a pool, or one namespace of it, after what was done.
///
/// # Errors
/// The table is damaged, there is no such namespace, or standard output is closed.
pub fn print_pool(
    context: &Context,
    pool: &Pool,
    only: Option<&str>,
    did: Vec<String>,
) -> Result<()> {
    let table = pool.table()?;
    if let Some(name) = only.filter(|name| table.named(name).is_none()) {
        return Err(Failure::request(format!(
            "there is no namespace {name:?} in {}",
            pool.path().display()
        )));
    }
    let document = document(pool, &table, only, did)?;
    print_as(
        context.global.format,
        &match context.global.format {
            Format::Json => to_json(&document)?,
            Format::Csv => to_csv(document.namespaces)?,
            Format::Table => text(&document),
        },
    )
}

fn document(
    pool: &Pool,
    table: &Segments,
    only: Option<&str>,
    did: Vec<String>,
) -> Result<NamespacesDocument> {
    let free = pool.free()?;
    let shown = |entry: &&Entry| only.is_none_or(|name| entry.is_live() && entry.name == name);
    let entries: Vec<&Entry> = table.entries.iter().filter(shown).collect();
    let hosts = pool.hosts();
    let name = |place: u16| pool.host_name(place);
    let line = |entry: &&Entry| {
        let admitted = hosts.iter().filter(|h| entry.hosts & (1 << h.place) != 0);
        let admitted: Vec<&str> = admitted.map(|host| host.name.as_str()).collect();
        NamespaceLine {
            name: entry.name.clone(),
            offset: entry.offset,
            bytes: entry.size,
            state: if entry.is_live() { "live" } else { "scrubbing" }.into(),
            owner: name(entry.owner),
            hosts: admitted.join(","),
            uid: entry.uid,
            gid: entry.gid,
            mode: format!("{:03o}", entry.mode),
            generation: entry.generation,
            kept: match entry.life {
                Life::Kept => "kept".into(),
                Life::Until(ms) => format!("until {ms}"),
                Life::With(process) => {
                    format!("process {} of {}", process.pid, name(process.host))
                }
            },
            references: table.holders_of(entry.id).count() as u64,
        }
    };
    let handles = entries.iter().flat_map(|entry| {
        let of = |holder: &weir_namespace::Holder| NamespaceHandle {
            namespace: entry.name.clone(),
            host: name(holder.process.host),
            pid: holder.process.pid,
            write: holder.write,
        };
        table.holders_of(entry.id).map(of).collect::<Vec<_>>()
    });
    Ok(NamespacesDocument {
        schema: NamespacesDocument::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        pool: pool.path().display().to_string(),
        uuid: pool.uuid(),
        medium: pool.medium().into(),
        unit_bytes: pool.unit(),
        capacity_bytes: pool.capacity(),
        free_bytes: free.iter().map(|range| range.1).sum(),
        largest_free_bytes: free.iter().map(|range| range.1).max().unwrap_or(0),
        lease_s: pool.lease().as_secs_f64(),
        did,
        namespaces: entries.iter().map(line).collect(),
        handles: handles.collect(),
        hosts: hosts
            .into_iter()
            .map(|host| NamespaceHost {
                name: host.name,
                silent_s: host.age.map(|age| age.as_secs_f64()),
                alive: host.alive,
            })
            .collect(),
    })
}

fn text(document: &NamespacesDocument) -> String {
    let mut text = String::new();
    for did in &document.did {
        text += &wrap(did, "", "  ");
    }
    let hosts: Vec<String> = document
        .hosts
        .iter()
        .map(|host| match (host.alive, host.silent_s) {
            (true, _) => host.name.clone(),
            (_, None) => format!("{} (has not come)", host.name),
            (_, Some(silent)) => format!("{} (silent for {silent:.0} s)", host.name),
        })
        .collect();
    let title = format!(
        "{}: {} for namespaces in units of {}, {} free, the largest range {}; {}; hosts: {}",
        document.pool,
        Bytes(document.capacity_bytes),
        Bytes(document.unit_bytes),
        Bytes(document.free_bytes),
        Bytes(document.largest_free_bytes),
        document.medium,
        hosts.join(", ")
    );
    text += &wrap(&title, "", "  ");
    if document.namespaces.is_empty() {
        return text;
    }
    let mut table = Table::new(&[
        Column::words("namespace"),
        Column::number("offset"),
        Column::number("size"),
        Column::words("owner"),
        Column::number("uid"),
        Column::words("mode"),
        Column::number("gen"),
        Column::number("open"),
        Column::words("kept"),
    ]);
    for line in &document.namespaces {
        let owner = match line.hosts.as_str() {
            "" => line.owner.clone(),
            hosts => format!("{} +{hosts}", line.owner),
        };
        table.row([
            line.name.clone(),
            line.offset.to_string(),
            Bytes(line.bytes).to_string(),
            owner,
            line.uid.to_string(),
            line.mode.clone(),
            line.generation.to_string(),
            line.references.to_string(),
            match line.state.as_str() {
                "live" => line.kept.clone(),
                state => state.to_owned(),
            },
        ]);
    }
    text += &format!("\n{table}");
    for handle in &document.handles {
        let access = if handle.write { "written" } else { "read" };
        let (name, pid, host) = (&handle.namespace, handle.pid, &handle.host);
        let line = format!("{name} is open to be {access} by process {pid} of host {host}");
        text += &wrap(&line, "- ", "  ");
    }
    text
}
