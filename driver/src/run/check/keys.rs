//! What the keys of a workload must satisfy.

use crate::protocol::{KeyFormat, Workload};
use crate::random::KEY_NUMBER_BYTES;

use super::distributions::size_distribution;
use super::{require, Checked};

const KEY_BYTES_MAX: usize = 65_535;
const ZERO_PADDING_MAX: usize = 1000;

/// Keys must have room for their numbers.
pub fn keys(workload: &Workload) -> Checked {
    // The prefix and the digits decide how long a key of YCSB is.
    let least = match workload.keys {
        None => KEY_NUMBER_BYTES,
        Some(_) => 1,
    };
    let allowed = format!("{least} to {KEY_BYTES_MAX}");
    let key_bytes = workload.key_bytes;
    let in_range = (least..=KEY_BYTES_MAX).contains(&key_bytes);
    require(in_range, "workload.key_bytes", key_bytes, &allowed)?;
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
        let sensible = *zero_padding <= ZERO_PADDING_MAX;
        let allowed = format!("0 to {ZERO_PADDING_MAX}");
        require(
            sensible,
            "workload.keys.zero_padding",
            zero_padding,
            &allowed,
        )?;
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
