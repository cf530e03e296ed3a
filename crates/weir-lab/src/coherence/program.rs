//! Structures that hosts share, and the lines that their operations touch.

use std::collections::{HashMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::btree::BTree;
use super::{Directory, Host, Line, Messages};

weir_model::named! {
    /// A structure that hosts share.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Structure {
        /// A table of locks with a line for each; an operation takes one and gives it back.
        Locks = "locks",
        /// Locks of 16 bytes, four to a line, of which each host takes its own: neighbours belong to different hosts.
        OwnLocks = "own_locks",
        /// A hash table of records of one line, which any host reads and updates.
        Table = "table",
        /// The same where each host has the records of a part to itself.
        Partitions = "partitions",
        /// A B+-tree whose readers compare versions and write nothing.
        Btree = "btree",
        /// A B+-tree whose readers count themselves in and out of each node.
        BtreeLatched = "btree_latched",
    }
}

impl std::str::FromStr for Structure {
    type Err = String;

    /// Accepts the stable names, with `-` and `_` alike.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Structure::ALL.map(Structure::name).join(", ");
        Structure::named(&text.replace('-', "_").to_lowercase())
            .ok_or_else(|| format!("no structure is called `{text}`; known are {known}"))
    }
}

weir_model::named! {
    /// A part of a structure.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Piece {
        /// The words of locks.
        Words = "lock words",
        /// Records of a table.
        Records = "records",
        /// The root of a tree.
        Root = "root",
        /// Nodes between the root and the leaves.
        Inner = "inner nodes",
        /// Leaves.
        Leaves = "leaves",
    }
}

/// How a structure is used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Use {
    /// Hosts.
    pub hosts: usize,
    /// Locks, records, or keys.
    pub items: u64,
    /// Entries of a tree's node.
    pub fan_out: usize,
    /// Share of operations that change something: updates, insertions.
    pub writes: f64,
    /// Exponent of Zipf's law, by which items are chosen.
    pub skew: f64,
    /// Lines that each host's cache has.
    pub capacity: usize,
    /// Entries of the device's snoop filter; one for every line where it is not given.
    pub filter: Option<u64>,
    /// Operations that each host does while they are counted.
    pub operations: u64,
    /// What chance is drawn from.
    pub seed: u64,
}

/// What operations took, all hosts together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Operations.
    pub operations: u64,
    /// Messages by the part of the structure.
    pub messages: Vec<(Piece, Messages)>,
}

impl Counted {
    /// Messages of all parts.
    pub fn all(&self) -> Messages {
        let mut all = Messages::default();
        for (_, one) in &self.messages {
            all.add(one);
        }
        all
    }
}

/// One step of an operation.
#[derive(Debug, Clone, Copy)]
enum Step {
    Read(Line, Piece),
    Write(Line, Piece),
    /// Reads the word of a lock until it is free, and takes it.
    Take(Line, u64, Piece),
    /// Frees it.
    Give(Line, u64, Piece),
    /// The operation is done.
    Done,
}

struct Chance(u64);

impl Chance {
    /// 64 random bits (SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }
}

/// Ranks by Zipf's law: how likely a rank or a lower one is.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(n: u64, skew: f64) -> Self {
        let mut sum = 0.0;
        let up_to = (1..=n.max(1)).map(|rank| {
            sum += (rank as f64).powf(-skew);
            sum
        });
        Self(up_to.collect())
    }

    fn draw(&self, chance: &mut Chance) -> u64 {
        let at = chance.unit() * self.0.last().copied().unwrap_or(1.0);
        self.0
            .partition_point(|&sum| sum <= at)
            .min(self.0.len() - 1) as u64
    }
}

/// A structure in use.
struct Program {
    structure: Structure,
    with: Use,
    chance: Chance,
    zipf: Zipf,
    tree: BTree,
}

/// Where locks and records begin; nodes of trees are below.
const TABLE: Line = 1 << 30;
/// A prime above the number of items, so that each of them has a lock of its own.
const APART: u64 = 2_654_435_761;
/// Spreads the popular keys of a tree over all its leaves.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Program {
    fn new(structure: Structure, with: Use) -> Self {
        let is_tree = matches!(structure, Structure::Btree | Structure::BtreeLatched);
        let mut keys: Vec<u64> = match is_tree {
            true => (0..with.items).map(key).collect(),
            false => Vec::new(),
        };
        keys.sort_unstable();
        let own = match structure {
            Structure::Partitions | Structure::OwnLocks => with.items / with.hosts as u64,
            _ => with.items,
        };
        Self {
            structure,
            with,
            chance: Chance(with.seed),
            zipf: Zipf::new(own, with.skew),
            tree: BTree::of(&keys, with.fan_out),
        }
    }

    /// The steps of the next operation of a host.
    fn operation(&mut self, host: Host, steps: &mut VecDeque<Step>) {
        let changes = self.chance.unit() < self.with.writes;
        let item = self.zipf.draw(&mut self.chance);
        match self.structure {
            Structure::Locks | Structure::OwnLocks => {
                // Popular locks are apart from each other, as hashed ones are.
                let place = item * APART % self.zipf.0.len() as u64;
                let (lock, in_line) = match self.structure {
                    Structure::Locks => (place, 1),
                    _ => (place * self.with.hosts as u64 + u64::from(host), 4),
                };
                let line = TABLE + (lock / in_line) as Line;
                steps.push_back(Step::Take(line, lock, Piece::Words));
                steps.push_back(Step::Give(line, lock, Piece::Words));
            }
            Structure::Table | Structure::Partitions => {
                let part = match self.structure {
                    Structure::Partitions => {
                        u64::from(host) * (self.with.items / self.with.hosts as u64)
                    }
                    _ => 0,
                };
                let line = TABLE + (part + item) as Line;
                steps.push_back(Step::Read(line, Piece::Records));
                if changes {
                    steps.push_back(Step::Write(line, Piece::Records));
                }
            }
            Structure::Btree | Structure::BtreeLatched => {
                let found = if changes {
                    self.chance.bits()
                } else {
                    key(item)
                };
                self.descend(found, steps);
                if changes {
                    self.insert(found, steps);
                }
            }
        }
        steps.push_back(Step::Done);
    }

    fn descend(&mut self, key: u64, steps: &mut VecDeque<Step>) {
        let path = self.tree.path(key);
        let levels = path.len();
        for (depth, (header, lines)) in path.into_iter().enumerate() {
            let piece = piece(depth, levels);
            // Before and after: readers compare the version, or count themselves in and out.
            let guard = match self.structure {
                Structure::BtreeLatched => Step::Write(header, piece),
                _ => Step::Read(header, piece),
            };
            steps.push_back(guard);
            steps.extend(lines.into_iter().map(|line| Step::Read(line, piece)));
            steps.push_back(guard);
        }
    }

    fn insert(&mut self, key: u64, steps: &mut VecDeque<Step>) {
        let levels = self.tree.levels();
        for change in self.tree.insert(key) {
            let (word, piece) = (u64::from(change.header), piece(change.depth, levels));
            steps.push_back(Step::Take(change.header, word, piece));
            steps.extend(
                change
                    .written
                    .into_iter()
                    .map(|line| Step::Write(line, piece)),
            );
            steps.push_back(Step::Give(change.header, word, piece));
        }
    }

    /// The lines that a host has read before anything counts.
    fn lines_of(&self, host: Host) -> std::ops::Range<Line> {
        let items = self.with.items as Line;
        match self.structure {
            Structure::OwnLocks => TABLE..TABLE + items.div_ceil(4),
            Structure::Locks | Structure::Table => TABLE..TABLE + items,
            Structure::Partitions => {
                let part = items / self.with.hosts as Line;
                TABLE + part * Line::from(host)..TABLE + part * (Line::from(host) + 1)
            }
            Structure::Btree | Structure::BtreeLatched => 0..self.tree.next,
        }
    }
}

/// The key of an item, so that neighbours in popularity are apart in the tree.
fn key(item: u64) -> u64 {
    item.wrapping_add(1).wrapping_mul(SPREAD)
}

fn piece(depth: usize, levels: usize) -> Piece {
    match depth {
        0 => Piece::Root,
        depth if depth + 1 == levels => Piece::Leaves,
        _ => Piece::Inner,
    }
}

/// Lets hosts use a structure, one step of one host at a time, whose turn is drawn. First every host reads all that it
/// will use (a lock's line is with one host), and does as many operations as are counted then.
///
/// Where `stop` says so, what was counted until then is returned.
pub fn run(structure: Structure, with: Use, stop: &dyn Fn() -> bool) -> Counted {
    let mut program = Program::new(structure, with);
    let mut directory = Directory::new(
        with.hosts,
        with.capacity,
        with.filter.map(|entries| entries as usize),
    );
    // Only what takes a lock touches its word.
    let by_one = matches!(structure, Structure::Locks | Structure::OwnLocks);
    for host in 0..with.hosts as Host {
        for line in program.lines_of(host) {
            if !by_one || line as usize % with.hosts == usize::from(host) {
                directory.access(host, line, false);
            }
        }
    }
    let mut pieces: Vec<Messages> = vec![Messages::default(); Piece::ALL.len()];
    let mut queues: Vec<VecDeque<Step>> = vec![VecDeque::new(); with.hosts];
    let mut taken: HashMap<u64, Host> = HashMap::new();
    let warm = with.operations * with.hosts as u64;
    let mut done = 0;
    while done < 2 * warm {
        let host = program.chance.below(with.hosts as u64) as Host;
        let queue = &mut queues[usize::from(host)];
        if queue.is_empty() {
            program.operation(host, queue);
        }
        let Some(&step) = queue.front() else { continue };
        let mut count = |line, write, piece: Piece| {
            let sent = directory.access(host, line, write);
            if done >= warm {
                pieces[piece as usize].add(&sent);
            }
        };
        match step {
            Step::Read(line, piece) => count(line, false, piece),
            Step::Write(line, piece) => count(line, true, piece),
            Step::Take(line, word, piece) => {
                count(line, false, piece);
                if taken.contains_key(&word) {
                    continue;
                }
                count(line, true, piece);
                taken.insert(word, host);
            }
            Step::Give(line, word, piece) => {
                count(line, true, piece);
                taken.remove(&word);
            }
            Step::Done => {
                done += 1;
                if done % 4096 == 0 && stop() {
                    break;
                }
            }
        }
        queue.pop_front();
    }
    let messages = Piece::ALL.into_iter().zip(pieces);
    Counted {
        operations: done.saturating_sub(warm),
        messages: messages
            .filter(|(_, sent)| *sent != Messages::default())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(structure: Structure, hosts: usize, writes: f64) -> Counted {
        let with = Use {
            hosts,
            items: 2_000,
            fan_out: 16,
            writes,
            skew: 0.99,
            capacity: 100_000,
            filter: None,
            operations: 2_000,
            seed: 7,
        };
        run(structure, with, &|| false)
    }

    #[test]
    fn one_host_waits_for_nobody_and_readers_invalidate_nothing() {
        for structure in Structure::ALL {
            let alone = used(structure, 1, 0.2).all();
            assert_eq!(
                (alone.invalidations, alone.snoops, alone.waits),
                (0, 0, 0),
                "{structure:?}"
            );
        }
        for structure in [Structure::Table, Structure::Partitions, Structure::Btree] {
            assert_eq!(
                used(structure, 8, 0.0).all().invalidations,
                0,
                "{structure:?}"
            );
        }
        assert_eq!(used(Structure::Partitions, 8, 0.5).all().invalidations, 0);
    }

    #[test]
    fn more_hosts_send_no_fewer_invalidations() {
        for structure in Structure::ALL {
            // No more than four hosts have locks of their own in one line.
            let most = if structure == Structure::OwnLocks {
                4
            } else {
                16
            };
            let hosts = [1, 2, 4, 8, 16].into_iter().filter(|&hosts| hosts <= most);
            let each = hosts.map(|hosts| {
                let counted = used(structure, hosts, 0.1);
                counted.all().invalidations as f64 / counted.operations as f64
            });
            let each: Vec<f64> = each.collect();
            assert!(each.is_sorted(), "{structure:?}: {each:?}");
        }
    }

    #[test]
    fn what_shares_a_line_costs_more_than_what_is_apart() {
        let [own, partitions, table, tree, latched] = [
            Structure::OwnLocks,
            Structure::Partitions,
            Structure::Table,
            Structure::Btree,
            Structure::BtreeLatched,
        ]
        .map(|structure| {
            let counted = used(structure, 8, 0.05);
            counted.all().invalidations as f64 / counted.operations as f64
        });
        // False sharing: no other host takes the locks of a host, but their lines are not its own.
        assert!(own > 0.5 && partitions == 0.0, "{own} {partitions}");
        assert!(tree > table, "an insertion moves entries: {tree} {table}");
        // Readers that count themselves write each level twice.
        assert!(latched > 2.0 * tree && latched > 1.0, "{latched} {tree}");
        let latched = used(Structure::BtreeLatched, 8, 0.05);
        let of = |piece| {
            let mut own = latched.messages.iter().filter(|(own, _)| *own == piece);
            own.next().map_or(0, |(_, sent)| sent.invalidations)
        };
        // All pass the root, and have it to themselves for as long as they count.
        assert!(of(Piece::Root) > latched.operations, "{latched:?}");
    }

    #[test]
    fn a_small_snoop_filter_takes_lines_back() {
        let with = |filter| {
            let with = Use {
                hosts: 4,
                items: 2_000,
                fan_out: 16,
                writes: 0.1,
                skew: 0.5,
                capacity: 100_000,
                filter,
                operations: 2_000,
                seed: 7,
            };
            run(Structure::Table, with, &|| false).all()
        };
        let (all, large, small) = (with(None), with(Some(2_000)), with(Some(200)));
        assert_eq!(all, large);
        assert_eq!(all.back_invalidations, 0);
        assert!(small.back_invalidations > 0 && small.fetches > 2 * all.fetches);
        assert!(small.waits > all.waits && small.down > all.down);
    }
}
