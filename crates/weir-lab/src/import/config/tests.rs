//! Laws and examples of configurations; the samples are our own.

use proptest::prelude::*;

use super::*;

const RAMULATOR: &str = "\
Frontend:
  impl: SimpleO3
  traces:
    - one.trace

MemorySystem:
  impl: GenericDRAM
  clock_ratio: 3   # to that of the front end

  DRAM:
    impl: DDR4
    org:
      preset: DDR4_8Gb_x8
      channel: 2
      rank: 2
    timing:
      preset: DDR4_2400R

  Controller:
    impl: Generic
    Scheduler:
      impl: FRFCFS
    plugins:
";

const INI: &str = "\
[system]
type=System
[system.mem_ctrls0]
type=MemCtrl
write_high_thresh_perc=85
write_low_thresh_perc=50
min_writes_per_switch=16
[system.mem_ctrls0.dram]
type=DRAMInterface
bank_groups_per_rank=4
beats_per_clock=2
burst_length=8
device_bus_width=8
device_size=1073741824
devices_per_rank=8
ranks_per_channel=2
read_buffer_size=32
write_buffer_size=64
tCK=833
tCL=14160
[system.mem_ctrls1]
type=MemCtrl
[system.mem_ctrls1.dram]
type=DRAMInterface
burst_length=8
device_bus_width=8
devices_per_rank=8
ranks_per_channel=2
tCK=833
";

const JSON: &str = r#"{"system": {"type": "System", "mem_ctrls": [{"type": "MemCtrl", "write_high_thresh_perc": 85,
 "dram": {"type": "DRAMInterface", "bank_groups_per_rank": 8, "burst_length": 16, "device_bus_width": 8, "beats_per_clock": 2,
 "devices_per_rank": 8, "ranks_per_channel": 1, "tCK": 416, "tCL": 16000, "device_size": 2147483648}}]}}"#;

fn value<'m>(memory: &'m Memory, key: &str) -> &'m str {
    let found = memory.mapped.iter().find(|(own, ..)| *own == key);
    found.map_or("", |(_, value, _)| value)
}

#[test]
fn a_configuration_of_ramulator_gives_its_dram_with_lines() {
    let memory = read("r.yaml", RAMULATOR).unwrap();
    assert_eq!((memory.media.0, memory.channels.0), (Media::Ddr4_2400, 2));
    assert!(
        memory
            .media
            .1
            .contains("r.yaml:17: MemorySystem.DRAM.timing.preset = DDR4_2400R")
    );
    assert_eq!(value(&memory, "dram.capacity"), "32 GiB");
    assert_eq!(value(&memory, "dram.ranks"), "2");
    let rest = |key: &str| memory.unmapped.iter().find(|v| v.key == key);
    assert_eq!(rest("MemorySystem.clock_ratio").unwrap().place, "r.yaml:8");
    assert!(rest("MemorySystem.Controller.Scheduler.impl").is_some());
    // A channel of DDR5 is half of ours.
    let ddr5 = RAMULATOR
        .replace("DDR4_8Gb_x8", "DDR5_16Gb_x8")
        .replace("DDR4_2400R", "DDR5_4800AN")
        .replace("impl: DDR4", "impl: DDR5");
    let memory = read("r.yaml", &ddr5).unwrap();
    assert_eq!((memory.media.0, memory.channels.0), (Media::Ddr5_4800, 1));
}

#[test]
fn gem5_is_read_as_ini_and_as_json() {
    let memory = read("config.ini", INI).unwrap();
    assert_eq!((memory.media.0, memory.channels.0), (Media::Ddr4_2400, 2));
    assert_eq!(value(&memory, "dram.capacity"), "32768 MiB");
    assert_eq!(value(&memory, "dram.read_queue"), "32");
    assert_eq!(value(&memory, "dram.drain_at"), "0.85");
    let keys: Vec<&str> = memory.unmapped.iter().map(|v| v.key.as_str()).collect();
    assert!(
        keys.contains(&"system.mem_ctrls0.dram.tCL")
            && keys.contains(&"system.mem_ctrls0.min_writes_per_switch")
    );
    let memory = read("config.json", JSON).unwrap();
    assert_eq!((memory.media.0, memory.channels.0), (Media::Ddr5_4800, 1));
    assert_eq!(value(&memory, "dram.drain_at"), "0.85");
}

#[test]
fn the_file_is_in_order_and_says_what_is_assumed_and_what_is_not_mapped() {
    let library = Library::builtin();
    let base = library.compose("skx2s").unwrap();
    for (file, text) in [("r.yaml", RAMULATOR), ("config.ini", INI)] {
        let memory = read(file, text).unwrap();
        let text = memory.platform(&library, &base, "ours", file).unwrap();
        let checked = Library::builtin().check("ours.toml", &text);
        assert!(checked.is_ok(), "{}\n{text}", checked.unwrap_err());
        assert!(text.contains("channels = { is = 2, source = "), "{text}");
        assert!(text.contains("not in the configuration"), "{text}");
        for value in &memory.unmapped {
            assert!(
                text.contains(&format!("# {}: {} = ", value.place, value.key)),
                "{text}"
            );
        }
    }
}

#[test]
fn what_the_model_has_not_is_refused_with_its_place() {
    for (text, from, to, said) in [
        (
            RAMULATOR,
            "DDR4_2400R",
            "DDR4_1866M",
            "r:17 is ddr4-1866, of which the model has no timing",
        ),
        (
            RAMULATOR,
            "channel: 2",
            "channel: two",
            "r:14: `MemorySystem.DRAM.org.channel` is `two`",
        ),
        (
            RAMULATOR,
            "impl: FRFCFS",
            "impl: [a, b]",
            "r:22: `impl: [a, b]`: only plain values",
        ),
        (
            RAMULATOR,
            "    impl: DDR4",
            "    impl DDR4",
            "r:11: `impl DDR4`: a key with `:`",
        ),
        (
            INI,
            "tCK=833",
            "tCK=fast",
            "r:19: `system.mem_ctrls0.dram.tCK` is `fast`",
        ),
        (
            INI,
            "ranks_per_channel=2\ntCK=833\n",
            "ranks_per_channel=1\ntCK=833\n",
            "differ in `ranks_per_channel`",
        ),
        (INI, "burst_length=8", "burst_length=4", "bursts of 4"),
        (
            INI,
            "type=DRAMInterface",
            "type=NVMInterface",
            "there is no configuration of memory",
        ),
    ] {
        let error = read("r", &text.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(said), "{said:?} is not in {error:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_configurations_are_read_or_explained(
        n in 0..3_usize, at in 0.0..1.0_f64, cut in 0_usize..30, piece in "[ \n:=\\[\\]{}\",#\\-a-zA-Z0-9é]{0,12}",
    ) {
        let text = [RAMULATOR, INI, JSON][n];
        let from = (at * text.len() as f64) as usize;
        let to = (from + cut).min(text.len());
        let text = format!("{}{piece}{}", &text[..from], &text[to..]);
        if let Err(error) = read("r", &text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
