//! What both tiers of miku-a keep under each controller, in percent of what they give alone.

use std::error::Error;

use weir_model::access::Op;
use weir_model::platform::Library;
use weir_sim::{Sampling, SimTestbed};
use weir_steer::published::{Control, Pair};
use weir_steer::registry::Policy;

fn main() -> Result<(), Box<dyn Error>> {
    let platform = Library::builtin().compose("miku-a")?;
    let bed = SimTestbed::new(&platform)?.sampled(Sampling::of(&platform));
    for policy in [Policy::Weir, Policy::Miku, Policy::Quota, Policy::Frequency] {
        for op in [Op::Ld, Op::St, Op::NtSt] {
            let (fast, slow) = Pair::Streams(op, op).kept(Control::Policy(policy), &bed, 1)?;
            let (fast, slow) = (fast * 100.0, slow * 100.0);
            println!("{:10} {op:6} {fast:5.1} {slow:5.1}", policy.name());
        }
    }
    Ok(())
}
