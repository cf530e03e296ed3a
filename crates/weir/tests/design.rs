//! `weir design` as a process: its answer, its exports, its report, a run that goes on, and files with mistakes.

use crate::common::{Place, with};
use crate::place::JOB;

pub const SPACE: &str = r#"kind = "design"
base = "emr2s+cxl-a"

[[axis]]
name = "cards"
key = "cards"
values = [1, 2]

[[axis]]
name = "pages"
key = "policy"
values = ["dram", "dram=3,cxl=1"]

[[workload]]
name = "scan-column"

[[objective]]
name = "speed"

[[objective]]
name = "dollars"
"#;

fn words(place: &Place, space: &str) -> Vec<String> {
    place.file("space.toml", space);
    with("design --accesses 1000 --file space.toml", "")
}

#[test]
fn a_space_has_a_front_in_words_rows_and_pictures() {
    let place = Place::new();
    let asked = words(&place, SPACE);
    let out = place.run(asked.clone()).expect(0).out();
    assert!(
        out.contains("of 4 designs") && out.contains("on the front of speed"),
        "{out}"
    );
    let csv = place.run("runs export last --as csv").expect(0).out();
    let head = csv
        .lines()
        .find(|line| line.contains("cards"))
        .unwrap_or_default();
    assert!(head.contains("cards,pages,design,"), "{csv}");
    assert!(csv.contains(",\"dram=3,cxl=1\","), "{csv}");
    // Rows of two runs go by the names of their designs.
    place.run(asked.clone()).expect(0);
    let compared = place.run("runs compare 1 2 --format json").expect(0).json();
    let row = &compared["comparisons"][0]["rows"][0]["row"];
    let of_run = place.run("runs show 1 --format json").expect(0).json();
    let designs = of_run["designs"].as_array().unwrap();
    assert!(designs.iter().any(|own| own["design"] == *row), "{row}");
    place.run("report last -o page.html").expect(0);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    for part in [
        "Designs by speed and dollars",
        "Designs by axes and objectives",
        "Main effects of axes",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

/// Of two axes with half of the effects each, and of one alone, none matters most.
#[test]
fn an_axis_matters_most_only_beside_one_that_matters_less() {
    let place = Place::new();
    let out = |space: &str| place.run(words(&place, space)).expect(0).out();
    let axes =
        "kind = \"design\"\nbase = \"emr2s+cxl-a\"\n\n[[axis]]\nkey = \"cards\"\nvalues = [1, 2]\n";
    let pins = "\n[[objective]]\nname = \"pins\"\n";
    let second = "\n[[axis]]\nkey = \"price.dram\"\nvalues = [1, 5]\n";
    let alone = out(&format!("{axes}{pins}"));
    assert!(!alone.contains("matters most"), "{alone}");
    let unlike = out(&format!("{axes}{second}{pins}"));
    assert!(
        unlike.contains("`cards` matters most, with 100 %"),
        "{unlike}"
    );
}

#[test]
fn a_space_without_a_design_that_can_be_measured_fails() {
    let place = Place::new();
    let space = SPACE.replace("[1, 2]", "[0]").replace("\"dram\", ", "");
    let done = place.run(words(&place, &space)).expect(1);
    assert!(
        done.err().contains("none of 1 designs can be measured"),
        "{}",
        done.err()
    );
    assert!(
        done.out().contains("there are no figures"),
        "{}",
        done.out()
    );
    // A program that is larger than a tier is named.
    place.file("big.toml", JOB.replace("2 GiB", "300 GiB"));
    let done = place.run(words(&place, &SPACE.replace("scan-column", "./big.toml")));
    let said = done.expect(1).err();
    assert!(
        said.contains("of the first: `big` (./big.toml:")
            && said.contains("is 300 GiB): tier `dram` has"),
        "{said}"
    );
}

#[test]
fn a_run_that_was_stopped_goes_on_from_the_answers_that_were_kept() {
    let place = Place::new();
    let asked = with(words(&place, SPACE), "--format json");
    let whole = place.run(asked).expect(0).json();
    assert_eq!(whole["designs"].as_array().map(Vec::len), Some(4));
    // What the store holds of a run that was stopped before its study had an answer.
    let db = rusqlite::Connection::open(place.store()).unwrap();
    db.execute_batch(
        "UPDATE runs SET state = 'partial', planned = 0, kept = 0, list_key = 'points',
             document = json_remove(document, '$.effects', '$.axes', '$.varied', '$.objectives', '$.constraints', '$.search', '$.search_seed',
                 '$.space');
         DELETE FROM results;",
    )
    .unwrap();
    drop(db);
    place.file("space.toml", SPACE.replace("[1, 2]", "[1, 4]"));
    let other = place.run("runs resume 1").expect(2).err();
    assert!(
        other.contains("space.toml has changed since run 1 began"),
        "{other}"
    );
    place.file("space.toml", SPACE);
    let resumed = place.run("runs resume 1 --format json").expect(0).json();
    assert_eq!(resumed["partial"], false);
    assert_eq!(resumed["designs"], whole["designs"]);
}

#[test]
fn parts_of_a_space_that_workers_tried_make_the_whole_once_they_are_merged() {
    let place = Place::new();
    let asked = with(words(&place, SPACE), "--format json");
    let whole = place.run(asked.clone()).expect(0).json();
    for part in ["1/3", "2/3", "3/3"] {
        let store = format!("{}.sqlite", &part[..1]);
        let own = with(asked.clone(), ["--part", part, "--store", &store]);
        // The rest belongs to other workers.
        assert_eq!(place.run(own).expect(0).out(), "");
        place
            .run(["runs", "merge", &store, "--store", "all.sqlite"])
            .expect(0);
    }
    // All answers are there: a machine that failed would be asked now.
    let db = rusqlite::Connection::open(place.path("all.sqlite")).unwrap();
    let count = |db: &rusqlite::Connection| -> (i64, i64) {
        db.query_row(
            "SELECT count(*), count(DISTINCT address) FROM answers",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap()
    };
    let before = count(&db);
    assert_eq!(before.0, before.1, "two workers measured the same");
    let joined = with(asked, ["--store", "all.sqlite"]);
    assert_eq!(
        place.run(joined).expect(0).json()["designs"],
        whole["designs"]
    );
    assert_eq!(count(&db), before);
}

#[test]
fn a_space_with_mistakes_is_refused_with_their_places() {
    let place = Place::new();
    let wrong = SPACE
        .replace("key = \"cards\"", "key = \"kards\"")
        .replace("\"dollars\"", "\"beauty\"");
    let run = place.run(words(&place, &wrong));
    run.refuses(
        2,
        &[
            "space.toml:6:7",
            "did you mean `cards`?",
            "known are speed, neighbour, p99",
        ],
    );
    let twice = SPACE.replace("name = \"pages\"", "name = \"cards\"");
    place
        .run(words(&place, &twice))
        .refuses(2, &["space.toml:10:8", "two axes are called `cards`"]);
    let same = SPACE.replace("key = \"policy\"", "key = \"cards\"");
    let same = same.replace("[\"dram\", \"dram=3,cxl=1\"]", "[1, 4]");
    place
        .run(words(&place, &same))
        .refuses(2, &["space.toml:11:7", "another axis varies the same"]);
    let nowhere = SPACE.replace("emr2s+cxl-a", "nowhere");
    let nowhere = place.run(words(&place, &nowhere)).expect(2).err();
    assert!(nowhere.contains("space.toml:2:8"), "{nowhere}");
    assert!(!nowhere.contains("--on"), "{nowhere}");
    let figure = SPACE.replace("name = \"pages\"", "name = \"watts\"");
    place
        .run(words(&place, &figure))
        .refuses(2, &["space.toml:10:8", "a figure of designs is"]);
    place
        .run("design --file nowhere.toml")
        .refuses(2, &["nowhere.toml"]);
    place.run("design").refuses(2, &["--file"]);
}
