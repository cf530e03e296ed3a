//! Asks a scan kernel for rows, through the stand-in on the host.
//!
//! `cargo run -p weir-kernels --example scan`

use weir_kernels::kernels::{Comparison, Predicate, Scan};
use weir_kernels::standin::Standin;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Rows of two columns: a number and its square.
    let rows = (0..1000_u64).flat_map(|n| [n, n * n]);
    let table: Vec<u8> = rows.flat_map(u64::to_le_bytes).collect();
    let window = Standin::start(Box::new(Scan::new(table, 16)), 4)?;
    let predicate = Predicate {
        column: 1,
        by: Comparison::Above,
        value: 990_000,
    };
    window.store(0, &predicate.line())?;
    let count = u64::from_le_bytes(window.load(0)?[..8].try_into()?);
    let first = u64::from_le_bytes(window.load(64)?[..8].try_into()?);
    println!("{count} numbers have a square above 990000; the first is {first}");
    Ok(())
}
