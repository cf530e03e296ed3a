//! Crash points, their states, and the first that recovery does not allow.
//!
//! States only increase until a fence, a flush, or a store on a platform that keeps caches takes some away. So a crash just before
//! each of these, and before each mark, has all states of the crashes since the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::event::{Actor, Event, Place, Requirement};
use crate::line::{Part, WORD};
use crate::platform::Platform;
use crate::recovered::{Answer, Choices, Pool, Recovered};

/// What bounds a check.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// States of one crash point, and of one line at it.
    pub states: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { states: 4096 }
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events of the trace.
    pub events: u64,
    /// Stores among them.
    pub stores: u64,
    /// Fences among them.
    pub fences: u64,
    /// Crash points that were looked at.
    pub crash_points: u64,
    /// States that recovery was asked about.
    pub states: u64,
    /// Crash points of which some states were left out.
    pub cut_short: u64,
    /// States of which recovery said nothing.
    pub unchecked: u64,
}

/// A store in a counter-example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFate {
    /// Whether it had arrived in the pool.
    pub arrived: bool,
    /// Where the program has it.
    pub place: Place,
    /// Bytes from the begin of the pool.
    pub at: u64,
    /// Its bytes, within one word.
    pub bytes: Vec<u8>,
}

/// A crash after which recovery is wrong, with the fewest missing stores of its crash point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterExample {
    /// The last event before the crash.
    pub after: Place,
    /// The host that crashed, where hosts share the pool.
    pub host: Option<u16>,
    /// The last mark.
    pub mark: String,
    /// What recovery said.
    pub said: String,
    /// Stores of lines that recovery read which no flush had ensured, in program order.
    pub stores: Vec<StoreFate>,
}

impl CounterExample {
    /// Stores that had not arrived.
    pub fn missing(&self) -> usize {
        self.stores.iter().filter(|store| !store.arrived).count()
    }
}

/// A recovery check that allows everything, for traces with requirements of their own.
///
/// # Errors
/// None.
pub fn allow(_: &mut Recovered<'_>) -> Result<Answer, std::convert::Infallible> {
    Ok(Answer::Legal)
}

/// Follows a trace.
#[derive(Debug)]
pub struct Checker<C> {
    check: C,
    limits: Limits,
    volatile: Vec<Range<u64>>,
    pool: Pool,
    flushed: BTreeMap<Actor, Vec<(usize, u64)>>,
    streamed: BTreeMap<Actor, BTreeSet<usize>>,
    recent: Vec<usize>,
    hosts: BTreeSet<u16>,
    actor: Actor,
    requires: Vec<Requirement>,
    mark: String,
    /// The last event that took states away, or changed what is legal.
    since: (u64, Place),
    before: Place,
    fresh: bool,
    tally: Tally,
    found: Option<CounterExample>,
}

impl<C, E> Checker<C>
where
    C: FnMut(&mut Recovered<'_>) -> Result<Answer, E>,
{
    /// A checker by the rules of a platform. `check` is the program's recovery: it may read a state, and says whether it is legal.
    /// It must say the same of the same state.
    pub fn new(platform: Platform, limits: Limits, check: C) -> Self {
        Self {
            check,
            limits,
            volatile: Vec::new(),
            pool: Pool {
                settled: Vec::new(),
                bytes: 0,
                lines: BTreeMap::new(),
                platform,
            },
            flushed: BTreeMap::new(),
            streamed: BTreeMap::new(),
            recent: Vec::new(),
            hosts: BTreeSet::new(),
            actor: Actor::default(),
            requires: Vec::new(),
            mark: String::new(),
            since: (0, Place::default()),
            before: Place::default(),
            fresh: true,
            tally: Tally::default(),
            found: None,
        }
    }

    /// What was done so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The first crash after which recovery is wrong; nothing is checked after it.
    pub fn found(&self) -> Option<&CounterExample> {
        self.found.as_ref()
    }

    /// Follows an event, which must be in the pool as [`Reader`](crate::Reader) has it.
    ///
    /// # Errors
    /// The check failed to say anything.
    pub fn event(&mut self, place: &Place, event: &Event) -> Result<(), E> {
        self.tally.events += 1;
        match event {
            Event::Pool(bytes) => {
                self.pool.bytes = usize::try_from(*bytes).unwrap_or(usize::MAX);
                self.pool.settled = vec![0; self.pool.bytes.next_multiple_of(self.unit())];
            }
            Event::Init(at, bytes) => {
                let at = *at as usize;
                self.pool.settled[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Event::By(actor) => self.actor = *actor,
            Event::Store(at, bytes) => self.store(place, *at, bytes, false)?,
            Event::NtStore(at, bytes) => self.store(place, *at, bytes, true)?,
            Event::Locked(at, bytes) => {
                if !self.pool.platform.needs_sync() {
                    self.fence(place)?;
                }
                self.store(place, *at, bytes, false)?;
            }
            Event::Flush(..) | Event::Clflush(..) | Event::Fence
                if self.pool.platform.needs_sync() => {}
            Event::Flush(at, length) => self.flush(*at, *length),
            Event::Sync(at, length) => {
                self.tally.fences += 1;
                self.flush(*at, *length);
                self.fence(place)?;
            }
            Event::Clflush(at, length) => {
                let lines = self.cached_lines(*at, *length);
                if !lines.is_empty() {
                    self.shrink(place)?;
                }
                for line in lines {
                    self.settle(line, |part| !part.streamed);
                }
            }
            Event::Fence => {
                self.tally.fences += 1;
                self.fence(place)?;
            }
            Event::Mark(text) => {
                self.shrink(place)?;
                self.mark.clone_from(text);
                self.fresh = true;
            }
            Event::Require(requirement) => {
                self.forget(place, &requirement.name)?;
                self.requires.push(requirement.clone());
            }
            Event::Forget(name) => self.forget(place, name)?,
        }
        self.before.clone_from(place);
        Ok(())
    }

    /// Bytes that the program does not use after a crash, such as locks that it keeps in the pool: stores there always arrive.
    pub fn leave_out(&mut self, bytes: Range<u64>) {
        self.volatile.push(bytes);
    }

    /// Looks at a crash after the last event.
    ///
    /// # Errors
    /// The check failed to say anything.
    pub fn finish(&mut self) -> Result<(), E> {
        self.crash()
    }

    fn forget(&mut self, place: &Place, name: &str) -> Result<(), E> {
        self.shrink(place)?;
        self.requires.retain(|one| one.name != name);
        self.fresh = true;
        Ok(())
    }

    /// Looks at a crash before an event that takes states away.
    fn shrink(&mut self, place: &Place) -> Result<(), E> {
        self.crash()?;
        self.since = (self.tally.events, place.clone());
        Ok(())
    }

    /// Bytes that are written back together.
    fn unit(&self) -> usize {
        self.pool.platform.unit()
    }

    /// Begins to write lines of a range back, which the thread's next fence waits for.
    fn flush(&mut self, at: u64, length: u64) {
        let lines = self.cached_lines(at, length);
        let seq = self.tally.events;
        let all = self.flushed.entry(self.actor).or_default();
        all.extend(lines.into_iter().map(|line| (line, seq)));
    }

    /// Lines of a range in caches that this host can write back.
    fn cached_lines(&self, at: u64, length: u64) -> Vec<usize> {
        let unit = self.unit();
        let lines = at as usize / unit..((at + length) as usize).div_ceil(unit);
        let shared = self.pool.platform.is_shared();
        (self.pool.lines.range(lines))
            .filter(|(_, line)| !shared || line.owner == self.actor.host)
            .map(|(number, _)| *number)
            .collect()
    }

    fn settle(&mut self, number: usize, sure: impl Fn(&Part) -> bool) {
        let unit = self.unit();
        let Some(line) = self.pool.lines.get_mut(&number) else {
            return;
        };
        line.settle(
            &mut self.pool.settled[number * unit..(number + 1) * unit],
            sure,
        );
        if line.parts.is_empty() {
            self.pool.lines.remove(&number);
        }
    }

    fn fence(&mut self, place: &Place) -> Result<(), E> {
        let actor = self.actor;
        let flushed = self.flushed.remove(&actor).unwrap_or_default();
        let streamed = self.streamed.remove(&actor).unwrap_or_default();
        if flushed.is_empty() && streamed.is_empty() {
            return Ok(());
        }
        self.shrink(place)?;
        for (line, seq) in flushed {
            self.settle(line, |part| !part.streamed && part.seq < seq);
        }
        for line in streamed {
            self.settle(line, |part| part.streamed && part.actor == actor);
        }
        Ok(())
    }

    fn store(&mut self, place: &Place, at: u64, bytes: &[u8], streamed: bool) -> Result<(), E> {
        self.tally.stores += 1;
        let (actor, seq) = (self.actor, self.tally.events);
        let stored = at..at + bytes.len() as u64;
        let inside = |range: &Range<u64>| range.start <= stored.start && stored.end <= range.end;
        if self.volatile.iter().any(inside) {
            self.pool.settled[at as usize..stored.end as usize].copy_from_slice(bytes);
            return Ok(());
        }
        let (unit, platform) = (self.unit(), self.pool.platform);
        // The page cache is ordinary memory.
        let streamed = streamed && !platform.is_page_cache();
        let lines = at as usize / unit..(at as usize + bytes.len()).div_ceil(unit);
        if platform.keeps_caches() && !self.recent.is_empty() {
            let before = self.before.clone();
            self.crash()?;
            self.since = (seq - 1, before);
            for line in std::mem::take(&mut self.recent) {
                self.settle(line, |part| !part.streamed);
            }
        }
        if platform.is_shared() && !streamed {
            let mut known = self.pool.lines.range(lines.clone());
            if known.any(|(_, line)| line.owner != actor.host) {
                self.shrink(place)?;
            }
        }
        self.hosts.insert(actor.host);
        let mut left = (at as usize, bytes);
        while !left.1.is_empty() {
            let (begin, rest) = left;
            let length = (WORD - begin % WORD).min(rest.len());
            let mut word = [0; WORD];
            word[..length].copy_from_slice(&rest[..length]);
            let line = self.pool.lines.entry(begin / unit).or_default();
            if !streamed || line.parts.is_empty() {
                line.owner = actor.host;
            }
            line.parts.push(Part {
                seq,
                place: place.clone(),
                streamed,
                actor,
                begin: begin % unit,
                bytes: (word, length),
            });
            left = (begin + length, &rest[length..]);
        }
        match (streamed, platform.keeps_caches()) {
            (true, _) => self.streamed.entry(actor).or_default().extend(lines),
            (false, true) => self.recent.extend(lines),
            (false, false) => {}
        }
        self.fresh = true;
        Ok(())
    }

    fn crash(&mut self) -> Result<(), E> {
        if !std::mem::take(&mut self.fresh) || self.found.is_some() {
            return Ok(());
        }
        self.tally.crash_points += 1;
        let hosts: Vec<u16> = match self.pool.platform.is_shared() {
            true => self.hosts.iter().copied().collect(),
            false => vec![0],
        };
        let mut left_out = false;
        for crashed in hosts {
            let mut choices = Choices::default();
            for tried in 1.. {
                self.tally.states += 1;
                match self.ask(&mut choices, crashed)? {
                    Answer::Legal => {}
                    Answer::Unchecked => self.tally.unchecked += 1,
                    Answer::Illegal(said) => self.keep(&choices, crashed, said),
                }
                if !choices.advance() {
                    break;
                }
                if tried == self.limits.states {
                    left_out = true;
                    break;
                }
            }
            left_out |= choices.cut_short;
        }
        self.tally.cut_short += u64::from(left_out);
        Ok(())
    }

    fn ask(&mut self, choices: &mut Choices, crashed: u16) -> Result<Answer, E> {
        let mut recovered = Recovered {
            pool: &self.pool,
            choices,
            crashed,
            most: self.limits.states,
            mark: &self.mark,
        };
        for requirement in &self.requires {
            if !recovered.meets(requirement) {
                return Ok(Answer::Illegal(format!("not met: {requirement}")));
            }
        }
        (self.check)(&mut recovered)
    }

    /// Keeps a counter-example if fewer stores are missing than in the one that is known, or the crash is earlier.
    fn keep(&mut self, choices: &Choices, crashed: u16, said: String) {
        let (mut after, mut stores) = (self.since.clone(), Vec::new());
        for choice in &choices.made {
            let parts = &self.pool.lines[&choice.line].parts;
            for (part, &arrived) in parts.iter().zip(&choice.states[choice.taken].arrived) {
                if arrived && part.seq > after.0 {
                    after = (part.seq, part.place.clone());
                }
                let fate = StoreFate {
                    arrived,
                    place: part.place.clone(),
                    at: (choice.line * self.unit() + part.begin) as u64,
                    bytes: part.bytes().to_vec(),
                };
                stores.push((part.seq, fate));
            }
        }
        // What comes after the crash has not been executed.
        stores.retain(|(seq, _)| *seq <= after.0);
        stores.sort_by_key(|(seq, fate)| (*seq, fate.at));
        let example = CounterExample {
            after: after.1,
            host: self.pool.platform.is_shared().then_some(crashed),
            mark: self.mark.clone(),
            said,
            stores: stores.into_iter().map(|(_, fate)| fate).collect(),
        };
        let rank = |one: &CounterExample| (one.missing(), one.after.line);
        if self
            .found
            .as_ref()
            .is_none_or(|known| rank(&example) < rank(known))
        {
            self.found = Some(example);
        }
    }
}
