//! The vocabulary of Weir.
//!
//! Everything above and below the [`Machine`](machine::Machine) trait speaks in these types and in
//! nothing else: units that cannot be mixed up, the tiers of a server, tenants that load it,
//! counters that mean what the hardware's mean, and the record of an experiment.
//!
//! The crate does no I/O. Its parsers read platform files, tables of events, files of counters and
//! published figures, from text that the caller supplies.

/// An enumeration of things with one name each, which is what files, tables and the command line call them.
///
/// Gives it `ALL` in the order of declaration, `name`, `named` for the thing of a name, and a display.
#[macro_export]
macro_rules! named {
    ($(#[$attribute:meta])* $visible:vis enum $Things:ident {
        $($(#[$of_one:meta])* $Thing:ident = $name:literal,)+
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visible enum $Things {
            $($(#[$of_one])* $Thing,)+
        }

        impl $Things {
            /// Every one, in the order of declaration.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Thing),+];

            /// What files, tables and the command line call it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Thing => $name,)+
                }
            }

            /// The one of a name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }

        impl ::std::fmt::Display for $Things {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub mod access;
pub mod action;
pub mod application_tenant;
pub mod capability;
pub mod counter_file;
pub mod counters;
pub mod diagnosis;
pub mod diagnostic;
pub mod disturbance;
pub mod document;
pub mod durable;
mod embedded;
pub mod events;
pub mod frame;
pub mod heat;
pub mod insight;
pub mod interplay;
pub mod latency;
pub mod machine;
pub mod metric;
pub mod number;
pub mod page_move;
pub mod platform;
pub mod published;
pub mod random;
pub mod region;
pub mod sampled;
pub mod scope;
pub mod statistics;
pub mod stop;
pub mod tenant;
pub mod tiering;
pub mod toml;
pub mod topology;
pub mod units;
pub mod workload;
