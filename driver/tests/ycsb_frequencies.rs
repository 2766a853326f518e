//! How often keys are chosen, compared with tables that the generators of YCSB-cpp made
//! (`tests/workloads/data/ycsb_cpp_frequencies`, which says how).

use std::fs;
use std::path::{Path, PathBuf};

use lsmtune_driver::protocol::{KeyDistribution, SizeDistribution};
use lsmtune_driver::random::{mix, KeyChooser, Sizes, Span};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Of ours; the tables have five times as many.
const DRAWS: u64 = 400_000;

/// A table: numbers with their counts, or ranges of numbers with theirs.
struct Table {
    name: String,
    draws: u64,
    numbers: Vec<Cell>,
    cells: Vec<Cell>,
}

struct Cell {
    first: u64,
    last: u64,
    count: u64,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/workloads/data/ycsb_cpp_frequencies")
}

fn table(name: &str) -> Table {
    let text = fs::read_to_string(folder().join(format!("{name}.csv"))).unwrap();
    let head = text.lines().next().unwrap();
    let draws = head.rsplit_once("draws=").unwrap().1.parse().unwrap();
    let (mut numbers, mut cells) = (Vec::new(), Vec::new());
    for line in text.lines().skip(2) {
        let (part, rest) = line.split_once(',').unwrap();
        let values: Vec<u64> = rest.split(',').map(|v| v.parse().unwrap()).collect();
        let cell = Cell {
            first: values[0],
            last: values[1],
            count: values[2],
        };
        if part == "number" {
            &mut numbers
        } else {
            &mut cells
        }
        .push(cell);
    }
    assert!(numbers.len() > 50 && cells.len() > 10, "{name}");
    Table {
        name: name.to_owned(),
        draws,
        numbers,
        cells,
    }
}

/// Positions drawn by `of` over `records` keys.
fn positions(of: &KeyDistribution, records: u64) -> Vec<u64> {
    let mut chooser = KeyChooser::new(of, records, false);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let live = Span {
        begin: 0,
        end: records,
    };
    (0..DRAWS)
        .map(|_| chooser.draw(&mut random, live))
        .collect()
}

/// Chi-square of two samples of different size, over cells and what is in none of them.
fn compare(table: &Table, cells: &[Cell], drawn: &[u64]) {
    let mut theirs: Vec<f64> = cells.iter().map(|cell| cell.count as f64).collect();
    let mut sorted = drawn.to_vec();
    sorted.sort_unstable();
    let below = |number: u64| sorted.partition_point(|drawn| *drawn < number);
    let mut ours: Vec<f64> = cells
        .iter()
        .map(|cell| (below(cell.last + 1) - below(cell.first)) as f64)
        .collect();
    theirs.push(table.draws as f64 - theirs.iter().sum::<f64>());
    ours.push(drawn.len() as f64 - ours.iter().sum::<f64>());
    let ratio = (drawn.len() as f64 / table.draws as f64).sqrt();
    let (mut statistic, mut used) = (0.0, 0);
    for (one, two) in theirs.iter().zip(&ours) {
        if one + two >= 10.0 {
            statistic += (ratio * one - two / ratio).powi(2) / (one + two);
            used += 1;
        }
    }
    let law = ChiSquared::new(f64::from(used - 1)).unwrap();
    let critical = law.inverse_cdf(0.999);
    assert!(
        statistic < critical,
        "{}: chi-square {statistic} of {used} cells, critical {critical}",
        table.name
    );
}

fn agrees(name: &str, drawn: &[u64]) {
    let table = table(name);
    compare(&table, &table.numbers, drawn);
    compare(&table, &table.cells, drawn);
}

/// Of the numbers in the table, those that both sides draw most often are the same, in the same
/// order, as long as chance cannot swap two of them.
fn same_order(name: &str, drawn: &[u64]) {
    let table = table(name);
    let ours = |number: u64| drawn.iter().filter(|drawn| **drawn == number).count() as f64;
    let mut hot: Vec<&Cell> = table.numbers.iter().collect();
    hot.sort_by_key(|cell| std::cmp::Reverse(cell.count));
    let scale = table.draws as f64 / drawn.len() as f64;
    let mut compared = 0;
    for pair in hot[..8].windows(2) {
        let gap = (pair[0].count - pair[1].count) as f64 / scale;
        if gap > 5.0 * (2.0 * pair[0].count as f64 / scale).sqrt() {
            assert!(ours(pair[0].first) > ours(pair[1].first), "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 1, "{name}: {compared}");
}

#[test]
fn scrambled_zipfian_agrees() {
    for (name, records, items, theta) in [
        ("scrambled-1000-1000-0.8", 1000, 1000, 0.8),
        ("scrambled-1000-1000-0.99", 1000, 1000, 0.99),
        ("scrambled-1000-1100-0.99", 1000, 1100, 0.99),
        ("scrambled-100000-110000-0.99", 100_000, 110_000, 0.99),
    ] {
        let of = KeyDistribution::ScrambledZipfian {
            theta,
            items: Some(items),
        };
        let drawn = positions(&of, records);
        agrees(name, &drawn);
        same_order(name, &drawn);
    }
}

#[test]
fn zipfian_agrees() {
    for (name, records, theta) in [
        ("zipfian-0-999-0.5", 1000, 0.5),
        ("zipfian-0-999-0.99", 1000, 0.99),
        ("zipfian-0-99999-0.8", 100_000, 0.8),
    ] {
        let drawn = positions(&KeyDistribution::Zipfian { theta }, records);
        agrees(name, &drawn);
        same_order(name, &drawn);
    }
}

#[test]
fn zipfian_lengths_agree() {
    let (low, high, theta) = (1, 100, 0.99);
    let sizes = Sizes::new(&SizeDistribution::Zipfian { low, high, theta });
    let drawn: Vec<u64> = (0..DRAWS).map(|draw| sizes.at(mix(draw))).collect();
    agrees("zipfian-1-100-0.99", &drawn);
    same_order("zipfian-1-100-0.99", &drawn);
}

#[test]
fn uniform_agrees() {
    agrees("uniform-0-999", &positions(&KeyDistribution::Uniform, 1000));
}

#[test]
fn latest_agrees() {
    let drawn = positions(&KeyDistribution::Latest { theta: 0.99 }, 1000);
    agrees("latest-1000", &drawn);
    same_order("latest-1000", &drawn);
}

/// While records are inserted. (YCSB-cpp goes on with a constant of the smaller number of records,
/// of which five per cent more records show nothing.)
#[test]
fn latest_agrees_as_records_are_inserted() {
    let (records, share, table_draws) = (100_000u64, 0.0025, 2_000_000u64);
    let mut chooser = KeyChooser::new(&KeyDistribution::Latest { theta: 0.99 }, records, false);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(12);
    let drawn: Vec<u64> = (0..DRAWS)
        .map(|draw| {
            // As many records as there were in the table at the same point of its draws.
            let inserted = draw as f64 / DRAWS as f64 * share * table_draws as f64;
            let end = records + inserted as u64;
            end - 1 - chooser.draw(&mut random, Span { begin: 0, end })
        })
        .collect();
    agrees("latest-growing-100000-0.0025", &drawn);
    same_order("latest-growing-100000-0.0025", &drawn);
}
