//! `namespace-check PATH BYTES OPERATIONS [UNIT]`: makes a pool in a file or DAX device, whose content is lost, and has
//! processes create, share, resize and destroy namespaces in it at random and be killed meanwhile. Prints one `key value`
//! a line. The guest `namespaces` of `tests/vm` runs it on a CXL device behind a switch.

use std::error::Error;
use std::process::Command;

use weir_namespace::Make;

#[path = "../tests/drill.rs"]
mod drill;

fn run() -> Result<(), Box<dyn Error>> {
    if let Ok(words) = std::env::var(drill::WORKER) {
        return drill::worker(&words);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |nth: usize| match words.get(nth) {
        Some(text) => Ok(text.parse::<u64>()?),
        None => Err::<u64, Box<dyn Error>>("PATH BYTES OPERATIONS [UNIT] are the arguments".into()),
    };
    let make = Make {
        bytes: Some(number(1)?),
        unit: words.get(3).map(|text| text.parse()).transpose()?,
        places: 2,
        entries: 64,
        holders: 128,
        force: true,
        ..Make::default()
    };
    let own = std::env::current_exe()?;
    let path = words[0].as_ref();
    let drilled = drill::drill(path, &make, number(2)?, 0x1234_5678_9abc_def1, &|| {
        Command::new(&own)
    })?;
    println!("operations {}", drilled.operations);
    println!("killed {}", drilled.killed);
    println!("kept {}", drilled.kept);
    println!("left 0");
    Ok(())
}

fn main() {
    if let Err(why) = run() {
        eprintln!("namespace-check: {why}");
        std::process::exit(1);
    }
}
