//! What the keys of a workload must satisfy.

use crate::protocol::{KeyFormat, Workload};
use crate::random::KEY_NUMBER_BYTES;

use super::distributions::size_distribution;
use super::{require, within, Checked};

const KEY_BYTES_MAX: usize = 65_535;
const ZERO_PADDING_MAX: usize = 1000;

/// Keys must have room for their numbers.
pub fn keys(workload: &Workload) -> Checked {
    // The prefix and the digits decide how long a key of YCSB is.
    let least = match workload.keys {
        None => KEY_NUMBER_BYTES,
        Some(_) => 1,
    };
    let key_bytes = workload.key_bytes;
    within(least..=KEY_BYTES_MAX, "workload.key_bytes", key_bytes)?;
    if let Some(KeyFormat::Ycsb {
        prefix,
        zero_padding,
        ..
    }) = &workload.keys
    {
        let length = format!("{} bytes", prefix.len());
        let longest = KEY_BYTES_MAX - ZERO_PADDING_MAX;
        let allowed = format!("at most {longest} bytes");
        let sensible = prefix.len() <= longest;
        require(sensible, "workload.keys.prefix", length, &allowed)?;
        let field = "workload.keys.zero_padding";
        within(0..=ZERO_PADDING_MAX, field, *zero_padding)?;
    }
    let Some(sizes) = &workload.key_sizes else {
        return Ok(());
    };
    let field = "workload.key_sizes";
    let numbers = workload.keys.is_none();
    require(numbers, field, "sizes", "none where keys has a format")?;
    let (least, most) = (KEY_NUMBER_BYTES as u64, key_bytes as u64);
    size_distribution(field, sizes, least, most)
}
