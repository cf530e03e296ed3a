//! An allocator by class of object: each class has a name that `weir` shows, a place among the tiers of memory, and a limit.
//!
//! ```
//! use weir_alloc::{Arenas, ObjectClass};
//!
//! let arenas = Arenas::from_text("policy.toml", "[class.index]\nplace = 0\nlimit = \"1 GiB\"")?;
//! let index = arenas.class(&ObjectClass::Index)?;
//! let node = index.alloc(256, 64)?;
//! // SAFETY: it is not used after this.
//! unsafe { weir_alloc::free(node.as_ptr()) };
//! assert_eq!(index.stats().objects, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A policy is a file of TOML; `docs/alloc.md` has its keys. The memory of a class is mapped in segments of 4 MiB and bound to the
//! nodes of its policy before a page exists; allocations above 2 MiB have mappings of their own. Mappings are named
//! `weir:CLASS`, so that `weir place objects`, `weir place apply` and recordings have each class as an object. What is known of
//! an object is not kept next to it: freeing touches nothing on a slow node.
//!
//! [`Class`] and [`Global`] implement [`std::alloc::GlobalAlloc`]; `include/weir_alloc.h` is the same for C.

mod capi;
mod forks;
mod global;
mod heap;
mod lock;
pub mod names;
mod node;
mod policy;
mod segment;
mod shard;
mod source;

use std::fmt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

pub use global::Global;
pub use heap::Stats;
pub use policy::{Placement, PolicyError, placements};
pub use source::Refused;

use heap::Heap;
use policy::Policy;

/// What an object is for. The first six are there without a policy that names them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ObjectClass {
    /// Nodes of trees and tables of hashes: small, read at random.
    Index,
    /// Pages of a buffer pool.
    Buffer,
    /// State of operators: hash tables of joins, heaps of sorts.
    Operator,
    /// What lives as long as a query.
    Temporary,
    /// Buffers of the log.
    Log,
    /// Columns that are rarely read.
    Cold,
    /// A class of the policy.
    Named(String),
}

impl ObjectClass {
    /// Those that need no policy.
    pub const ALL: [Self; 6] = [
        Self::Index,
        Self::Buffer,
        Self::Operator,
        Self::Temporary,
        Self::Log,
        Self::Cold,
    ];

    /// Its name in a policy.
    pub fn name(&self) -> &str {
        match self {
            Self::Index => "index",
            Self::Buffer => "buffer",
            Self::Operator => "operator",
            Self::Temporary => "temporary",
            Self::Log => "log",
            Self::Cold => "cold",
            Self::Named(name) => name,
        }
    }

    /// The class with this name.
    pub fn named(name: &str) -> Self {
        let known = Self::ALL.into_iter().find(|class| class.name() == name);
        known.unwrap_or_else(|| Self::Named(name.to_owned()))
    }
}

/// The classes of a program.
#[derive(Debug, Clone)]
pub struct Arenas {
    classes: Vec<Class>,
    notices: Vec<String>,
}

impl Arenas {
    /// The classes of a policy file, and those of [`ObjectClass::ALL`] that it does not name.
    ///
    /// # Errors
    /// The file cannot be read, says something unknown, or names a node that is absent; or the kernel does not bind memory.
    pub fn from_policy(path: impl AsRef<Path>) -> Result<Self, PolicyError> {
        Self::of(Policy::open(path.as_ref())?)
    }

    /// The same of the text of a policy; `file` is its name in errors.
    ///
    /// # Errors
    /// As [`Arenas::from_policy`].
    pub fn from_text(file: &str, text: &str) -> Result<Self, PolicyError> {
        Self::of(Policy::read(file, text, &node::present())?)
    }

    fn of(policy: Policy) -> Result<Self, PolicyError> {
        let Policy {
            mut rules,
            mut notices,
        } = policy;
        for class in ObjectClass::ALL {
            if !rules.iter().any(|rule| rule.name == class.name()) {
                rules.push(policy::Rule {
                    name: class.name().into(),
                    ..Default::default()
                });
            }
        }
        for rule in &mut rules {
            // A page that is bound and goes back says whether the kernel does it.
            let page = segment::map(segment::PAGE)
                .ok_or_else(|| PolicyError::new("the kernel gives no memory"))?;
            let bound = rule.place.bind(page.expose_provenance(), segment::PAGE, 0);
            segment::unmap(page, segment::PAGE);
            if let Err(why) = bound {
                let what = format!(
                    "class {}: the kernel does not place its memory: {why}",
                    rule.name
                );
                if !rule.place.elsewhere {
                    return Err(PolicyError::new(what));
                }
                notices.push(what);
                rule.place = node::Place::default();
            }
        }
        let classes = rules
            .into_iter()
            .map(|rule| Class(Heap::new(&rule.name, rule.place, rule.limit)));
        Ok(Self {
            classes: classes.collect(),
            notices,
        })
    }

    /// A class. Its memory stays until the last of these values and of its arenas is dropped.
    ///
    /// # Errors
    /// The policy has no such class.
    pub fn class(&self, class: &ObjectClass) -> Result<Class, PolicyError> {
        let found = self.classes.iter().find(|one| one.name() == class.name());
        found.cloned().ok_or_else(|| {
            let known: Vec<&str> = self.classes.iter().map(Class::name).collect();
            PolicyError::new(format!(
                "there is no class `{}`; there are {}",
                class.name(),
                known.join(", ")
            ))
        })
    }

    /// All classes.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// What is not as the policy says, where it allows that.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}

/// A class, from which objects are allocated.
#[derive(Clone)]
pub struct Class(Arc<Heap>);

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Class({}, {:?})", self.name(), self.stats())
    }
}

impl Class {
    /// Its name.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// At least this many bytes at a multiple of `align`, a power of two up to 4 MiB. They are not cleared.
    ///
    /// # Errors
    /// The class is at its limit, its nodes have no room, or the kernel refuses.
    pub fn alloc(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Refused> {
        self.0.alloc(bytes, align)
    }

    /// What it has.
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// Gives memory without objects back, which is kept for the next ones.
    pub fn trim(&self) {
        self.0.trim();
    }
}

/// Frees an object of any class; `false` where no object begins there, and nothing is done.
///
/// # Safety
/// The object is not used any more, and its class exists.
pub unsafe fn free(object: *mut u8) -> bool {
    // SAFETY: the caller's promise.
    unsafe { heap::free(object) }
}

/// The bytes that an object may use, at least those that were asked for; `None` where no object begins there.
pub fn usable_size(object: *const u8) -> Option<usize> {
    heap::usable(object).map(|(_, bytes)| bytes)
}

/// Another size for an object, in its class, at a multiple of `align`. It stays where it is if it fits there and uses at least
/// half of it; else it is copied.
///
/// # Errors
/// As [`Class::alloc`]; the object is then what it was. [`Refused::Kernel`] with `EINVAL` where no object begins there.
///
/// # Safety
/// The caller uses the new address only, and its class exists.
pub unsafe fn realloc(object: *mut u8, bytes: usize, align: usize) -> Result<NonNull<u8>, Refused> {
    let known = heap::usable(object).zip(NonNull::new(object));
    let ((heap, had), object) = known.ok_or(Refused::Kernel(libc::EINVAL))?;
    let fits = bytes <= had && bytes >= had / 2;
    if fits && align.is_power_of_two() && object.as_ptr().addr().is_multiple_of(align) {
        return Ok(object);
    }
    let new = heap.alloc(bytes, align)?;
    // SAFETY: both have at least this many bytes, and the new one is used by no other thread.
    unsafe {
        std::ptr::copy_nonoverlapping(object.as_ptr(), new.as_ptr(), had.min(bytes));
        heap::free(object.as_ptr());
    }
    Ok(new)
}
