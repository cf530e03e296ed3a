//! Files of vectors, and what can be wrong with them.

use weir_ann::files::{Element, read};
use weir_ann::vectors::Vectors;

fn floats(records: &[&[f32]]) -> Vec<u8> {
    let record = |row: &&[f32]| {
        let head = (row.len() as u32).to_le_bytes();
        let body = row.iter().flat_map(|x| x.to_le_bytes());
        head.into_iter().chain(body).collect::<Vec<u8>>()
    };
    records.iter().flat_map(record).collect()
}

fn error(bytes: &[u8]) -> String {
    let read = read("a.fvecs", Element::Float, &mut &*bytes, 100);
    read.unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read_and_no_more_than_was_asked_for() {
    let bytes = floats(&[&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]]);
    let all = read("a.fvecs", Element::Float, &mut &*bytes, 100).unwrap();
    assert_eq!(
        all,
        Vectors::new(2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap()
    );
    let two = read("a.fvecs", Element::Float, &mut &*bytes, 2).unwrap();
    assert_eq!(two.len(), 2);
    let small = [2, 0, 0, 0, 7, 255];
    assert_eq!(
        read("a.bvecs", Element::Byte, &mut &small[..], 9)
            .unwrap()
            .row(0),
        [7.0, 255.0]
    );
    let whole = [1, 0, 0, 0, 254, 255, 255, 255];
    assert_eq!(
        read("a.ivecs", Element::Whole, &mut &whole[..], 9)
            .unwrap()
            .row(0),
        [-2.0]
    );
}

#[test]
fn what_is_wrong_is_named_with_its_file_and_record() {
    assert_eq!(error(&[]), "a.fvecs: it has no vector");
    assert_eq!(
        error(&floats(&[&[1.0, 2.0], &[3.0]])),
        "a.fvecs, record 1: it has 1 elements, and the first has 2"
    );
    assert_eq!(
        error(&floats(&[&[1.0], &[f32::NAN]])),
        "a.fvecs, record 1: element 0 is no finite number"
    );
    assert_eq!(
        error(&[0, 0, 0, 0]),
        "a.fvecs, record 0: it says that it has 0 elements"
    );
    assert_eq!(
        error(&[255; 9]),
        "a.fvecs, record 0: it says that it has 4294967295 elements"
    );
    let whole = floats(&[&[1.0, 2.0], &[3.0, 4.0]]);
    for cut in 1..whole.len() {
        let is_between = cut == 12;
        let read = read("a.fvecs", Element::Float, &mut &whole[..cut], 100);
        assert_eq!(read.is_ok(), is_between, "cut after {cut}");
        let record = if cut < 12 { 0 } else { 1 };
        let names = |error: weir_ann::AnnError| {
            error
                .to_string()
                .contains(&format!("record {record}: the file ends"))
        };
        assert!(read.map_or_else(names, |_| true), "cut after {cut}");
    }
    assert!(
        Element::of("vectors.txt")
            .unwrap_err()
            .to_string()
            .contains(".fvecs")
    );
    assert_eq!(Element::of("a/b.bvecs"), Ok(Element::Byte));
}
