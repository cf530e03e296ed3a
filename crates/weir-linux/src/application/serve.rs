//! A server with its data, and the generator of its requests.

use weir_model::workload::RealProgram;

use super::server::Server;
use super::{Trouble, Where};
use weir_loops::programs::client::Client;
use weir_loops::programs::keys::Keys;
use weir_loops::programs::mix::{Mix, Shares};
use weir_loops::programs::values::{self, PER_RECORD};

/// Starts a server, and loads its data. `alone` says that the generator has a processor of its own.
///
/// # Errors
/// It is not installed, ends, refuses a write, or the user stops it.
pub fn loaded(
    program: &RealProgram,
    place: &Where,
    (connections, alone): (u32, bool),
    seed: u64,
    stop: &dyn Fn() -> bool,
) -> Result<(Server, Client), Trouble> {
    let value = (program.record.get() as usize).max(values::LEAST);
    let records = (program.bytes.get() / value as u64).max(2);
    let bytes = records * (value as u64 + PER_RECORD);
    let mut server = Server::start(program.application, program.threads, bytes, place)?;
    let (shares, popular) = Shares::of(program.variant, program.updates);
    let mix = Mix {
        records,
        value,
        shares,
        keys: Keys::new(popular, records, program.skew),
    };
    let protocol = server.protocol();
    let client = Client::connect(protocol, server.socket(), connections as usize, mix, seed)?;
    let mut client = client.alone(alone);
    client.load(stop).map_err(|why| server.why(why))?;
    Ok((server, client))
}
