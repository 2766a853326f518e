//! Writes a trace of any size, for benchmarks of what reads traces.
//!
//! `generate_trace FILE RECORDS KEYS [SEED]`: 83 % gets, 14 % puts of 35 to 165 bytes, 3 % seeks,
//! the mix of FAST'20's "all random" benchmark; keys as those of db_bench, of 24 bytes; the hottest
//! tenth of the keys gets half of the operations, and so on down (a power law); one record in
//! 1,000 is a batch of ten puts.

use std::fs::File;
use std::io::{self, BufWriter};

use lsmtune_driver::random::encode_key;
use lsmtune_driver::trace::{BatchBuilder, TraceVersion, TraceWriter};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The share of the first x keys is `x ^ 0.3`: half of the operations on a tenth of the keys.
const EXPONENT: f64 = 0.30;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| {
        arguments
            .get(index)
            .and_then(|text| text.parse::<u64>().ok())
    };
    let (Some(path), Some(records), Some(keys)) = (arguments.first(), number(1), number(2)) else {
        eprintln!("usage: generate_trace FILE RECORDS KEYS [SEED]");
        std::process::exit(2);
    };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number(3).unwrap_or(1));
    let sink = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut unix_us = 1_700_000_000_000_000;
    let mut trace = TraceWriter::new(sink, TraceVersion::V0_2, "10.2", unix_us)?;
    let (mut key, value, mut batch) = ([b'0'; 24], [b'v'; 165], BatchBuilder::default());
    for _ in 0..records {
        unix_us += random.random_range(0..20u64);
        let mut draw = || {
            let rank = (random.random::<f64>().powf(1.0 / EXPONENT) * keys as f64) as u64;
            // Hot keys lie all over the key space.
            lsmtune_driver::random::mix(rank) % keys
        };
        encode_key(&mut key, draw());
        match random.random_range(0..1000u32) {
            0..830 => trace.get(unix_us, 0, &key)?,
            830..970 => {
                batch.clear();
                batch.put(0, &key, &value[..random.random_range(35..=165)]);
                trace.write(unix_us, &batch)?;
            }
            970 => {
                batch.clear();
                for _ in 0..10 {
                    encode_key(&mut key, random.random_range(0..keys));
                    batch.put(0, &key, &value[..100]);
                }
                trace.write(unix_us, &batch)?;
            }
            _ => trace.seek(unix_us, 0, &key, (&[], &[]), false)?,
        }
    }
    trace.finish(unix_us)?;
    Ok(())
}
