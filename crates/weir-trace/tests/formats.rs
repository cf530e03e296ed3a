//! Every format gives the accesses that were written, whatever the pieces in which its bytes come, and damage is reported.

use proptest::prelude::*;
use weir_trace::decode::guess;
use weir_trace::{Access, Decoder, Format, Sink, Wrong};

/// What a decoder gave.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    accesses: Vec<Access>,
    instructions: u64,
}

impl Sink for Seen {
    fn instructions(&mut self, count: u64) {
        self.instructions += count;
    }

    fn access(&mut self, access: Access) -> bool {
        self.accesses.push(access);
        true
    }
}

/// What a decoder gave of a program whose accesses all stay in the first-level cache.
struct Near(Vec<Access>);

impl Sink for Near {
    fn instructions(&mut self, _: u64) {}

    fn access(&mut self, access: Access) -> bool {
        self.0.push(access);
        false
    }
}

fn access(address: u64, bytes: u32, store: bool) -> Access {
    Access {
        address,
        bytes,
        store,
        from: None,
    }
}

/// Reads in pieces of this many bytes.
fn read(format: Format, bytes: &[u8], piece: usize) -> Result<(Seen, Option<String>), Wrong> {
    let mut decoder = Decoder::new(format, &bytes[..bytes.len().min(1 << 16)])?;
    let mut seen = Seen::default();
    let (mut from, mut to) = (0, 0);
    while to < bytes.len() {
        to = (to + piece).min(bytes.len());
        from += decoder.decode(&bytes[from..to], &mut seen)?;
    }
    let end = decoder.end(&bytes[from..], &mut seen)?;
    Ok((seen, end))
}

#[track_caller]
fn gives(format: Format, bytes: &[u8], accesses: &[Access], instructions: u64) {
    assert_eq!(guess(bytes), Some(format));
    for piece in [1, 7, 64, bytes.len()] {
        let (seen, end) = read(format, bytes, piece).unwrap();
        assert_eq!(seen.accesses, accesses, "pieces of {piece}");
        assert_eq!((seen.instructions, end), (instructions, None));
    }
}

#[test]
fn lackey() {
    let text = "==12== Lackey, an example Valgrind tool\n==12== \nI  04000780,3\nI  0400078b,5\n S 1ffefff948,8\n \
                L 04222cac,16\n M 0421c7cc,4\nI  04000790,4\n==12== \n";
    let text = text.replace("\n \x20", "\n ");
    gives(
        Format::Lackey,
        text.as_bytes(),
        &[
            access(0x1f_fefff948, 8, true),
            access(0x0422_2cac, 16, false),
            access(0x0421_c7cc, 4, false),
            access(0x0421_c7cc, 4, true),
        ],
        3,
    );
}

fn record(ip: u64, registers: [u8; 6], stores: [u64; 2], loads: [u64; 4]) -> Vec<u8> {
    let mut bytes = ip.to_le_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(registers);
    for address in stores.into_iter().chain(loads) {
        bytes.extend(address.to_le_bytes());
    }
    bytes
}

#[test]
fn champsim_knows_which_load_an_address_comes_from() {
    let bytes = [
        record(0x40_1000, [3, 0, 6, 0, 0, 0], [0, 0], [0x10_0000, 0, 0, 0]),
        // Through an addition.
        record(0x40_1004, [4, 25, 3, 0, 0, 0], [0, 0], [0; 4]),
        record(
            0x40_1008,
            [5, 0, 4, 0, 0, 0],
            [0x7000, 0],
            [0x20_0000, 0, 0, 0],
        ),
    ]
    .concat();
    let dependent = Access {
        from: Some(0x10_0000),
        ..access(0x20_0000, 8, false)
    };
    gives(
        Format::Champsim,
        &bytes,
        &[
            access(0x10_0000, 8, false),
            dependent,
            access(0x7000, 8, true),
        ],
        3,
    );
}

#[test]
fn champsim_forgets_loads_that_are_done_and_those_of_the_stack_pointer() {
    let load = |register, from, address| {
        let registers = [register, 0, from, 0, 0, 0];
        record(0x40_1000, registers, [0, 0], [address, 0, 0, 0])
    };
    let from = |between: usize, register| {
        let other = record(0x40_1004, [9, 0, 0, 0, 0, 0], [0, 0], [0; 4]);
        let all = [
            load(register, 0, 0x10_0000),
            other.repeat(between),
            load(5, register, 0x20_0000),
        ];
        let (seen, _) = read(Format::Champsim, &all.concat(), 64).unwrap();
        seen.accesses[1].from
    };
    assert_eq!(from(511, 3), Some(0x10_0000));
    assert_eq!(from(512, 3), None);
    assert_eq!(from(0, 6), None);
}

#[test]
fn a_load_that_stays_in_the_first_level_cache_delays_nothing() {
    let load = |register, from, address| {
        let registers = [register, 0, from, 0, 0, 0];
        record(0x40_1000, registers, [0, 0], [address, 0, 0, 0])
    };
    let champsim = [load(3, 0, 0x10_0000), load(5, 3, 0x20_0000)].concat();
    let entries = [
        entry(25, 0, 5),
        entry(17, 1, 0),
        entry(0, 8, 0x1000),
        entry(0x7757, 0, 0x1000),
        entry(0, 8, 0x2000),
    ]
    .concat();
    for (format, bytes) in [(Format::Champsim, champsim), (Format::Drmemtrace, entries)] {
        let mut near = Near(Vec::new());
        let mut decoder = Decoder::new(format, &bytes).unwrap();
        decoder.decode(&bytes, &mut near).unwrap();
        let from: Vec<_> = near.0.iter().map(|access| access.from).collect();
        assert_eq!(from, [None, None], "{format}");
    }
}

#[test]
fn entries_behind_a_part_that_was_skipped_know_their_place_and_no_load_before_it() {
    let before = [entry(25, 0, 5), entry(17, 1, 0), entry(0, 8, 0x1000)].concat();
    let behind = [entry(0x7757, 0, 0x1000), entry(0, 8, 0x2000)].concat();
    let mut seen = Seen::default();
    let mut decoder = Decoder::new(Format::Drmemtrace, &before).unwrap();
    decoder.decode(&before, &mut seen).unwrap();
    decoder.skip(1200);
    decoder.decode(&behind, &mut seen).unwrap();
    assert_eq!(seen.accesses[1], access(0x2000, 8, false));
    let wrong = decoder.decode(&entry(99, 0, 0), &mut seen).unwrap_err();
    let place = 36 + 1200 + 24;
    assert!(wrong.to_string().starts_with(&format!("byte {place}: ")));
}

#[test]
fn ramulator() {
    let pair = [access(0x12_3440, 64, false), access(64, 64, true)];
    gives(Format::Ramulator, b"LD 0x123440\nST 64\n", &pair, 0);
    gives(Format::Ramulator, b"R 0x123440\nW 0x40\n", &pair, 0);
    gives(Format::Ramulator, b"0x123440 R\n0x40 W\n", &pair, 0);
    gives(Format::Ramulator, b"3 1193024 64\n", &pair, 4);
    // An address within a line is of that line, and not of the next one, too.
    gives(Format::Ramulator, b"LD 0x123478\nST 65\n", &pair, 0);
    let vector = read(Format::Ramulator, b"R 0,1,2\n", 8).unwrap_err();
    assert!(vector.to_string().starts_with("line 1: ") && vector.to_string().contains("vector"));
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn message(fields: &[(u64, u64)]) -> Vec<u8> {
    let fields = fields
        .iter()
        .flat_map(|(key, value)| [varint(key << 3), varint(*value)].concat());
    let fields: Vec<u8> = fields.collect();
    [varint(fields.len() as u64), fields].concat()
}

#[test]
fn gem5() {
    let pair = [access(1_193_024, 64, false), access(64, 8, true)];
    let text = b"r,1193024,64,500\nw,64,8,2,700,4198400\nu,0,0,900\n";
    gives(Format::Gem5, text, &pair, 0);
    gives(
        Format::Gem5,
        b"7,r,1193024,64,256,500\n8,w,64,8,0,700\n",
        &pair,
        0,
    );
    let bytes = [
        b"gem5".to_vec(),
        // A header; what is in it does not matter.
        vec![6, 10, 2, b'm', b'b', 24, 9],
        message(&[(1, 500), (2, 1), (3, 1_193_024), (4, 64), (5, 256)]),
        message(&[(1, 700), (2, 4), (3, 64), (4, 8), (7, 4_198_400)]),
        message(&[(1, 900), (2, 25), (3, 0), (4, 0)]),
    ]
    .concat();
    gives(Format::Gem5, &bytes, &pair, 0);
    let cut = read(Format::Gem5, &bytes[..bytes.len() - 1], 5).unwrap();
    assert!(cut.1.unwrap().contains("cut off"));
}

fn entry(kind: u16, size: u16, address: u64) -> Vec<u8> {
    [
        &kind.to_le_bytes()[..],
        &size.to_le_bytes(),
        &address.to_le_bytes(),
    ]
    .concat()
}

#[test]
fn drmemtrace() {
    let pair = [access(0x7fff_9f5f_d9b0, 8, false), access(0x1000, 4, true)];
    let entries = [
        entry(25, 0, 5),
        entry(28, 9, 1),
        entry(22, 4, 4711),
        entry(47, 4, 0x1234),
        entry(10, 5, 0x46_7c45),
        entry(0, 8, 0x7fff_9f5f_d9b0),
        entry(17, 2, 0x0203),
        entry(1, 4, 0x1000),
        entry(26, 0, 0),
    ]
    .concat();
    gives(Format::Drmemtrace, &entries, &pair, 3);
    let view = "           1           0:       3264 <marker: version 5>\n           \
                7           1:       3264 ifetch       5 byte(s) @ 0x0000000000467c45 4c 8b 54 24 08       mov\n           \
                8           1:       3264 read         8 byte(s) @ 0x00007fff9f5fd9b0 by PC 0x0000000000467c45\n           \
                9           2:       3264 ifetch       4 byte(s) @ 0x0000000000467c4a non-branch\n          \
               10           2:       3264 write        4 byte(s) @ 0x0000000000001000 by PC 0x0000000000467c4a\n\
                View tool results:\n              2 : total instructions\n";
    gives(Format::Drmemtrace, view.as_bytes(), &pair, 2);
    let older = "T468608   0x0000000000467c45  4c 8b 54 24 08       mov    0x08(%rsp), %r10\n\
                 T468608     read  8 byte(s) @ 0x7fff9f5fd9b0\nT468608     write 4 byte(s) @ 0x1000\n";
    gives(Format::Drmemtrace, older.as_bytes(), &pair, 1);
}

#[test]
fn what_view_does_not_print_is_counted() {
    let view = "Output format:\n<--record#-> <--instr#->: <---tid---> <record details>\n------------\n\n   \
                1   1:  3264 ifetch   11 byte(s) @ 0x0000000000467c45 48 c7 05 44 33 22 11 mov\n   \
                                                                      00 00 00 00\n   \
                2   1:  3264 write    8 byte(s) @ 0x0000000000001000 by PC 0x0000000000467c45\n\
                View tool results:\n       1 : total instructions\n";
    let left_out = |text: &str| {
        let mut decoder = Decoder::new(Format::Drmemtrace, text.as_bytes()).unwrap();
        decoder.decode(text.as_bytes(), &mut Vec::new()).unwrap();
        decoder.left_out()
    };
    assert_eq!(left_out(view), None);
    let said = left_out(&format!("{view}Segmentation fault\nread 0x7fff\n"));
    let expected =
        "2 lines left out that `view` does not print; the first is line 10: `Segmentation fault`";
    assert_eq!(said.as_deref(), Some(expected));
}

#[test]
fn an_entry_of_the_plugin_says_where_an_address_was_loaded_while_that_load_may_be_in_flight() {
    let from = |address| entry(0x7757, 0, address);
    let load = |address| entry(0, 8, address);
    let entries = [
        entry(25, 0, 5),
        entry(17, 1, 0),
        load(0x1000),
        entry(17, 511, 0),
        from(0x1008),
        load(0x2000),
        // Nothing was loaded there.
        from(0x5000),
        load(0x3000),
        // This load is done long ago.
        entry(17, 600, 0),
        from(0x2000),
        load(0x4000),
        load(0x6000),
        // An entry is of one load.
        from(0x4000),
        load(0x7000),
        load(0x8000),
    ]
    .concat();
    let loaded = |address, from| Access {
        from,
        ..access(address, 8, false)
    };
    let expected = [
        loaded(0x1000, None),
        loaded(0x2000, Some(0x1008)),
        loaded(0x3000, None),
        loaded(0x4000, None),
        loaded(0x6000, None),
        loaded(0x7000, Some(0x4000)),
        loaded(0x8000, None),
    ];
    gives(Format::Drmemtrace, &entries, &expected, 1112);
}

#[test]
fn other_byte_orders_are_reported() {
    let turned = |bytes: Vec<u8>, word: usize| -> Vec<u8> {
        bytes
            .chunks(word)
            .flat_map(|chunk| chunk.iter().rev().copied().collect::<Vec<u8>>())
            .collect()
    };
    let mut champsim = record(0x40_1000, [0; 6], [0, 0], [0x10_0000, 0, 0, 0]);
    champsim = [
        turned(champsim[..8].to_vec(), 8),
        champsim[8..16].to_vec(),
        turned(champsim[16..].to_vec(), 8),
    ]
    .concat();
    let entries = [vec![0, 25, 0, 0], 5_u64.to_be_bytes().to_vec()].concat();
    for (format, bytes) in [
        // An instruction whose address ends in zeros could be of either order, its successor not.
        (
            Format::Champsim,
            [
                turned(record(0x40_0000, [0; 6], [0, 0], [0; 4]), 8),
                champsim.clone(),
            ]
            .concat(),
        ),
        (Format::Champsim, champsim),
        (Format::Drmemtrace, entries),
        (Format::Gem5, b"5meg\x06".to_vec()),
    ] {
        assert_eq!(guess(&bytes), Some(format));
        let output = read(format, &bytes, 64).unwrap_err().to_string();
        assert!(
            output.contains("byte order") && output.starts_with("byte 0"),
            "{output}"
        );
    }
}

#[test]
fn what_is_of_another_format_is_reported_with_its_place() {
    let output = |format, bytes: &[u8]| read(format, bytes, 64).unwrap_err().to_string();
    assert!(output(Format::Lackey, b"I  0400,3\nhello\n").starts_with("line 2: `hello`"));
    assert!(output(Format::Lackey, b"\x1f\x8b\x08\0\0").contains("compressed twice"));
    assert!(output(Format::Champsim, &[b'x'; 128]).starts_with("byte 8: "));
    assert!(output(Format::Gem5, b"r,12\n").starts_with("line 1: "));
    assert!(output(Format::Drmemtrace, &[7, 0].repeat(30)).starts_with("byte 0: "));
    assert!(output(Format::Lackey, &[0; 64]).contains("not text"));
    assert_eq!(guess(b"hello world, this is no trace\n"), None);
}

#[test]
fn a_trace_that_was_cut_off_is_reported() {
    let bytes = record(0x40_1000, [0; 6], [0, 0], [0x10_0000, 0, 0, 0]).repeat(2);
    let (seen, end) = read(Format::Champsim, &bytes[..100], 64).unwrap();
    assert_eq!(seen.accesses.len(), 1);
    assert!(end.unwrap().contains("36 bytes"));
    let (seen, end) = read(Format::Lackey, b" L 04222cac,8\n L 0422", 5).unwrap();
    assert_eq!(seen.accesses.len(), 1);
    assert!(end.unwrap().contains("last line"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600), format in 0_usize..5) {
        if let Err(error) = read(Format::ALL[format], &bytes, 50) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn lines_of_lackey_come_back(all in prop::collection::vec((any::<u64>(), 1_u32..600, any::<bool>()), 0..50)) {
        let line = |&(address, bytes, store): &(u64, u32, bool)| {
            format!(" {} {address:08x},{bytes}\n", if store { 'S' } else { 'L' })
        };
        let text: String = all.iter().map(line).collect();
        let (seen, _) = read(Format::Lackey, text.as_bytes(), 13).unwrap();
        let expected: Vec<Access> = all.iter().map(|&(a, b, s)| access(a, b, s)).collect();
        prop_assert_eq!(seen.accesses, expected);
    }
}
