//! Requirements that a trace has itself: `NAME [OFFSET=HEX ->] OFFSET=HEX[|HEX]`.

use std::fmt;

use crate::event::hex;
use crate::recovered::Recovered;

/// Bytes at an offset that have one of these values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holds {
    /// Bytes from the begin of the pool.
    pub at: u64,
    /// Values, all of one length.
    pub values: Vec<Vec<u8>>,
}

impl Holds {
    fn met(&self, recovered: &mut Recovered<'_>) -> bool {
        let length = self.values.first().map_or(0, Vec::len);
        let found = recovered.read(self.at, length);
        self.values.contains(&found)
    }
}

/// What must hold, perhaps only if something else does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Its name; a later one of this name replaces it.
    pub name: String,
    /// Where it is given and does not hold, nothing is required.
    pub if_holds: Option<Holds>,
    /// What must hold.
    pub then: Holds,
}

impl Requirement {
    /// Whether a state meets it.
    pub fn met(&self, recovered: &mut Recovered<'_>) -> bool {
        let asked = self.if_holds.as_ref().is_none_or(|it| it.met(recovered));
        !asked || self.then.met(recovered)
    }
}

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.values.iter().map(|value| hex(value)).collect();
        write!(f, "{}={}", self.at, values.join("|"))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.name)?;
        if let Some(holds) = &self.if_holds {
            write!(f, "{holds} -> ")?;
        }
        write!(f, "{}", self.then)
    }
}
