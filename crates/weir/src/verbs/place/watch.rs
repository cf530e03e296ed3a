//! `weir place watch`: keeps the objects of a running process on the tiers that suit their heat.
//!
//! `weir_steer::place` decides; this looks, moves at a rate while it looks, and notes where pages were before they move.

use std::collections::{BTreeMap, VecDeque};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_insight::studies::place::Part;
use weir_lab::Outcome as _;
use weir_linux::Root;
use weir_linux::heat::ObjectHeat;
use weir_linux::memory::objects::{objects, started, stretches};
use weir_linux::memory::{Mover, ProcessObject, base_page, free_on_node, has_memory};
use weir_linux::tiering;
use weir_model::document::Document;
use weir_model::tiering::{Balancing, MovedPages};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Nanos};
use weir_steer::place::{PlaceController, PlaceStep, Room, Rules, SeenObject, Way};

use super::apply::{rate, undo_file};
use super::live::COLD;
use super::objects::on_tiers;
use super::seen::{Eyes, Seen, stays};
use super::undo::Undo;
use super::watched::{PlaceWatched, WatchedMove, WatchedObject};
use crate::context::{Context, lasts};
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::nodes::{node_of, pair_here};
use crate::session::say;
use crate::shown::show;
use crate::system::System;
use crate::verbs::moved;

/// Moves that a document has; of more, the latest.
const MOST_MOVES: usize = 10_000;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir place watch --pid 4711
  weir place watch --pid 4711 --free 16G --rate 0.5 --for 8h
  weir place restore weir-place-4711.txt         takes all of it back

An object goes to the slower tier after it was cold for --cold-windows in a
row, and comes back after it was hot for --hot-windows. One that comes back
soon has to be cold for twice as long the next time. Code, the stack and
objects below 1 MiB stay. Ctrl-C ends it; what has moved stays where it is.

Exit codes: 3 where nothing sees what the process touches, or this user may not.")]
pub struct Args {
    /// The process.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// The tier that takes cold objects.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    tier: TierName,
    /// The tier that keeps hot ones.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    from: TierName,
    /// Keep this much on the slower tier and no more: a size, or a share of the process's memory [default: all that is cold].
    #[arg(long, value_name = "SIZE|SHARE%", value_parser = Part::read)]
    free: Option<Part>,
    /// Move at most this much in a second.
    #[arg(long, value_name = "GB/S", default_value = "0.1", value_parser = rate)]
    rate: GbPerSec,
    /// The time between two looks at the heat of objects.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    window: Nanos,
    /// An object is cold with fewer touches of a page in a second.
    #[arg(long, value_name = "N", default_value_t = COLD, value_parser = touches)]
    cold: f64,
    /// It is hot with this many touches of a page in a second.
    #[arg(long, value_name = "N", default_value_t = 0.1, value_parser = touches)]
    hot: f64,
    /// It must be cold for this many windows in a row.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    cold_windows: u32,
    /// It must be hot for this many windows in a row.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    hot_windows: u32,
    /// End after this time; without it when the process ends, or at a stop.
    #[arg(long = "for", value_name = "TIME", value_parser = lasts)]
    lasts: Option<Nanos>,
    /// The file that says where pages were, for `weir place restore` [default: weir-place-PID.txt here].
    #[arg(long, value_name = "FILE")]
    undo: Option<PathBuf>,
}

fn touches(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1e6 => Ok(number),
        _ => Err("it is a number above 0 and at most a million".into()),
    }
}

/// A part of an object on its way.
#[derive(Debug)]
struct Going {
    object: String,
    way: Way,
    mover: Mover,
    pages: MovedPages,
}

/// Moves the first of several, at one rate for all. Returns nothing: what became of pages is counted.
fn advance(going: &mut VecDeque<Going>, over: &mut Vec<Going>, host: &System, time: Duration) {
    let Some(first) = going.front_mut() else {
        return;
    };
    first
        .mover
        .advance(&host.root, Nanos(time.as_nanos() as f64));
    first.pages += first.mover.counted();
    if first.mover.is_over() {
        over.extend(going.pop_front());
    }
}

/// A process that is watched.
struct Watched<'a> {
    host: &'a System,
    args: &'a Args,
    /// The nodes of the fast and of the slow tier.
    nodes: (u32, u32),
    undo: Undo,
    controller: PlaceController,
    began: Instant,
    moves: VecDeque<WatchedMove>,
    left_out: u64,
    /// Bytes that went down and up.
    sums: BTreeMap<String, (u64, u64)>,
    /// The windows in which objects stayed for lack of room, and the most bytes of one: cold ones, and hot ones.
    no_room: [(u64, Bytes); 2],
    /// Whether the node of either tier has no memory.
    offline: [bool; 2],
    warnings: Vec<String>,
}

impl Watched<'_> {
    /// Which objects stay for lack of room on which tier.
    fn crowded(&self) -> [(&'static str, &TierName); 2] {
        [("cold", &self.args.tier), ("hot", &self.args.from)]
    }

    /// Notes what has no room.
    fn note_room(&mut self, context: &Context) {
        let lacked = self.controller.lacked();
        let t_s = self.began.elapsed().as_secs_f64();
        for (at, bytes) in [lacked.far, lacked.near].into_iter().enumerate() {
            if bytes == Bytes(0) {
                continue;
            }
            if self.no_room[at].0 == 0 {
                let (what, tier) = self.crowded()[at];
                context.note(&format!(
                    "{t_s:.1} s: {bytes} of {what} objects stay: {tier} has no room"
                ));
            }
            let (windows, most) = &mut self.no_room[at];
            *windows += 1;
            *most = (*most).max(bytes);
        }
    }

    /// Notes where a tier's memory goes offline, for which the kernel moves its pages elsewhere, and where it is back.
    fn note_offline(&mut self, context: &Context) {
        let tiers = [
            (self.nodes.0, &self.args.from),
            (self.nodes.1, &self.args.tier),
        ];
        for (at, (node, tier)) in tiers.into_iter().enumerate() {
            let is_offline = !has_memory(&self.host.root, node);
            if is_offline == std::mem::replace(&mut self.offline[at], is_offline) {
                continue;
            }
            let t_s = self.began.elapsed().as_secs_f64();
            let now = match is_offline {
                true => "has no memory: it went offline, and the kernel moved its pages",
                false => "has memory again",
            };
            let text = format!("{t_s:.1} s: node {node} ({tier}) {now}");
            context.note(&text);
            self.warnings.push(text);
        }
    }

    /// Moves, and what became of their pages.
    fn account(&mut self, going: impl Iterator<Item = Going>, context: &Context) {
        let t_s = self.began.elapsed().as_secs_f64();
        for mut one in going {
            one.pages += one.mover.counted();
            let bytes = one.pages.moved * base_page() as u64;
            let sum = self.sums.entry(one.object.clone()).or_default();
            let tier = match one.way {
                Way::Down => &self.args.tier,
                Way::Up => &self.args.from,
            };
            match one.way {
                Way::Down => sum.0 += bytes,
                Way::Up => sum.1 += bytes,
            }
            if moved::stayed(&one.pages).is_some() {
                self.controller.stayed(&one.object);
            }
            let moved = WatchedMove {
                t_s,
                object: one.object,
                tier: tier.to_string(),
                pages: one.pages,
                ended: one.mover.ended().map(ToString::to_string),
            };
            let stayed =
                (moved.stayed()).map_or_else(String::new, |why| format!("; pages stayed: {why}"));
            context.note(&format!(
                "{t_s:.1} s: {} of {} moved to {tier}{stayed}",
                Bytes(bytes),
                moved.object
            ));
            if self.moves.len() == MOST_MOVES {
                self.moves.pop_front();
                self.left_out += 1;
            }
            self.moves.push_back(moved);
        }
    }

    /// What moves in the next window.
    fn decide(
        &mut self,
        found: &[(ProcessObject, ObjectHeat)],
        took: f64,
    ) -> Result<VecDeque<Going>> {
        let (near, far) = self.nodes;
        let on = |object: &ProcessObject, node: u32| {
            object.nodes.get(&node).copied().unwrap_or(Bytes(0))
        };
        let seen = |(object, heat): &(ProcessObject, ObjectHeat)| SeenObject {
            name: object.name.clone(),
            near: on(object, near),
            far: on(object, far),
            heat: (heat.resident > Bytes(0)).then(|| heat.touches / took),
        };
        let may_move = |of: &&(ProcessObject, ObjectHeat)| stays(&of.0, of.1.resident).is_none();
        let seen: Vec<SeenObject> = found.iter().filter(may_move).map(seen).collect();
        let free = |node| free_on_node(&self.host.root, node).unwrap_or(Bytes(0));
        let room = Room {
            near: free(near),
            far: free(far),
        };
        let mut going = VecDeque::new();
        for step in self.controller.decide(&seen, room) {
            let object = found.iter().find(|(object, _)| object.name == step.object);
            if let Some((object, _)) = object {
                going.extend(self.begin(object, &step)?);
            }
        }
        Ok(going)
    }

    /// Finds the pages of a step, notes where they are, and begins to move them. `None` where the process has just ended.
    fn begin(&mut self, object: &ProcessObject, step: &PlaceStep) -> Result<Option<Going>> {
        let (near, far) = self.nodes;
        let (from, to) = match step.way {
            Way::Down => (near, far),
            Way::Up => (far, near),
        };
        let Ok(places) = stretches(object) else {
            return Ok(None);
        };
        let mut left = step.bytes.get();
        let mut parts = Vec::new();
        for (part, _) in places.into_iter().filter(|(_, node)| *node == from) {
            let part = part.first(Bytes(left));
            left -= part.bytes().get();
            if part.bytes() == Bytes(0) {
                break;
            }
            parts.push((part, from));
        }
        self.undo.note(&parts)?;
        let parts: Vec<_> = parts.into_iter().map(|(part, _)| part).collect();
        let mover = Mover::over(&self.host.root, self.args.pid, &parts, to, self.args.rate);
        Ok(mover.ok().map(|mover| Going {
            object: step.object.clone(),
            way: step.way,
            mover,
            pages: MovedPages::default(),
        }))
    }
}

/// Takes a process for this watch alone; a watch of another user is refused, too. The kernel frees the name with the socket.
fn taken(root: &Root, process: u32) -> Result<Option<UnixListener>> {
    let began = started(root, process).unwrap_or_default();
    let name = SocketAddr::from_abstract_name(format!("weir place watch {process} {began}"));
    match name.and_then(|name| UnixListener::bind_addr(&name)) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(Failure::work(format!(
            "another `weir place watch` moves the memory of process {process}: end it first"
        ))),
        // Without sockets it is not known whether another watch runs.
        Err(_) => Ok(None),
    }
}

/// Watches until the process ends, or a stop is requested.
///
/// # Errors
/// There is no such process or tier, nothing sees what it touches, or this user may not.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    let window = args.window.as_secs();
    if !(0.1..=3600.0).contains(&window) {
        return Err(Failure::request("--window is from 100 ms to an hour"));
    }
    if args.hot <= args.cold {
        return Err(Failure::request("--hot must be more than --cold"));
    }
    let (host, _) = pair_here(context, &args.from, &args.tier)?;
    let topology = host.view.topology()?;
    let nodes = (
        node_of(&topology, &args.from)?,
        node_of(&topology, &args.tier)?,
    );
    let _taken = taken(&host.root, args.pid)?;
    let mut eyes = Eyes::open(&host.root, args.pid, context)?;
    let (source, unseen) = (eyes.source(), eyes.unseen(false));
    let known = objects(&host.root, args.pid).unwrap_or_default();
    let resident: Bytes = known
        .iter()
        .flat_map(|object| object.nodes.values().copied())
        .sum();
    let path = undo_file(args.undo.as_ref(), args.pid);
    let mut watched = Watched {
        host: &host,
        args,
        nodes,
        undo: Undo::create(&path, &host.root, args.pid)?,
        controller: PlaceController::new(Rules {
            cold: args.cold,
            hot: args.hot,
            cold_windows: args.cold_windows,
            hot_windows: args.hot_windows,
            most: Bytes((args.rate.get() * window * 1e9) as u64),
            wanted: args.free.map(|part| part.of(resident)),
        }),
        began: Instant::now(),
        moves: VecDeque::new(),
        left_out: 0,
        sums: BTreeMap::new(),
        no_room: [(0, Bytes(0)); 2],
        offline: [false; 2],
        warnings: Vec::new(),
    };
    context.note(&format!(
        "touches are seen by {source}; `weir place restore {}` moves back what moves",
        path.display()
    ));
    let balancing = tiering::in_force(&host.root).balancing;
    let mut warnings = Vec::new();
    if balancing.is_some_and(|balancing| balancing != Balancing::Off) {
        warnings.push("kernel.numa_balancing has the kernel move pages of it, too".to_owned());
    }
    (warnings.iter()).for_each(|warning| say(&format!("weir: warning: {warning}")));
    let mut last: Vec<(ProcessObject, ObjectHeat)> = Vec::new();
    let (mut windows, mut took) = (0, 1.0);
    let mut going: VecDeque<Going> = VecDeque::new();
    let until = args
        .lasts
        .map(|lasts| Duration::from_secs_f64(lasts.as_secs()));
    let is_over = |began: Instant| until.is_some_and(|until| began.elapsed() >= until);
    // Whatever happens, the kernel's monitor is ended.
    let ended = loop {
        let (began, mut before) = (watched.began, Instant::now());
        let mut over = Vec::new();
        let seen = eyes.window(Duration::from_secs_f64(window), || {
            let now = Instant::now();
            advance(&mut going, &mut over, &host, now - before);
            before = now;
            !context.stop.requested() && !is_over(began)
        });
        watched.account(over.into_iter().chain(going.drain(..)), context);
        match seen {
            Ok(Seen::Objects(found, seconds)) => {
                windows += 1;
                watched.note_offline(context);
                match watched.decide(&found, seconds) {
                    Ok(next) => going = next,
                    Err(why) => break Err(why),
                }
                watched.note_room(context);
                (last, took) = (found, seconds);
            }
            Ok(Seen::Stopped) if context.stop.requested() => break Ok("stopped".to_owned()),
            Ok(Seen::Stopped) => break Ok("the time is over".to_owned()),
            Ok(Seen::Ended) => break Ok(format!("process {} has ended", args.pid)),
            Err(why) => break Err(why),
        }
    };
    eyes.end()?;
    let ended = ended?;
    for warning in watched.warnings.drain(..) {
        say(&format!("weir: warning: {warning}"));
        warnings.push(warning);
    }
    for ((what, tier), (lacked, most)) in watched.crowded().into_iter().zip(watched.no_room) {
        if lacked > 0 {
            let warning = format!(
                "in {lacked} of {windows} windows {what} objects stayed, up to {most}: {tier} had no room"
            );
            say(&format!("weir: warning: {warning}"));
            warnings.push(warning);
        }
    }
    // Where they are now, as far as the process still runs.
    let now = objects(&host.root, args.pid).unwrap_or_default();
    let object = |(object, heat): &(ProcessObject, ObjectHeat)| {
        let now = now.iter().find(|now| now.name == object.name);
        let (down, up) = watched.sums.get(&object.name).copied().unwrap_or_default();
        WatchedObject {
            object: object.name.clone(),
            resident: heat.resident,
            on: now.map_or_else(String::new, |now| on_tiers(&now.nodes, &topology)),
            heat: heat.touches / took,
            down: Bytes(down),
            up: Bytes(up),
            wait: watched.controller.wait(&object.name),
        }
    };
    let mut header = header(PlaceWatched::SCHEMA, context, &topology.processor);
    header.machine = host.identity.clone();
    header.warnings = warnings;
    let output = PlaceWatched {
        process: args.pid,
        seconds: watched.began.elapsed().as_secs_f64(),
        windows,
        source: source.into(),
        unseen,
        ended,
        objects: last.iter().map(object).collect(),
        moves: watched.moves.into(),
        left_out: watched.left_out,
    };
    show(context, &Document { header, output }, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_watched_by_one_at_a_time() {
        let root = Root::live();
        let own = std::process::id();
        let first = taken(&root, own).unwrap();
        let second = format!("{:?}", taken(&root, own).unwrap_err());
        assert!(second.contains("another `weir place watch`"), "{second}");
        drop(first);
        taken(&root, own).unwrap();
    }
}
