//! How a program makes what it writes durable on persistent memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

crate::named! {
    /// What is done for each block that is written.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Durable {
        /// Nothing: lines arrive in memory when a cache evicts them.
        #[default]
        None = "none",
        /// Its lines are written back, and a fence waits for them. A crash may leave a block half new.
        Block = "block",
        /// Its old bytes are kept in an undo log until the new ones are durable, so that after a crash a block is
        /// old or new as a whole.
        Transaction = "transaction",
    }
}

impl std::str::FromStr for Durable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(|| {
            format!("`{text}` is not a durability; write none, block or transaction")
        })
    }
}
