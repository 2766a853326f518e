//! The hash with which YCSB scatters numbers.

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The 64-bit FNV-1a hash of the eight bytes of `number`, the lowest first. YCSB's C++ port calls
/// it `FNVHash64`. (The constants are those of Fowler, Noll and Vo. YCSB in Java computes the same
/// and takes the absolute value.)
#[inline]
pub fn fnv1a(number: u64) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    number.to_le_bytes().into_iter().fold(OFFSET_BASIS, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed from the definition with arbitrary-precision integers.
    #[test]
    fn known_values() {
        assert_eq!(fnv1a(0), 12_161_962_213_042_174_405);
        assert_eq!(fnv1a(1), 9_929_646_806_074_584_996);
        assert_eq!(fnv1a(2), 16_626_593_026_977_353_223);
        assert_eq!(fnv1a(u64::MAX), 10_157_053_723_145_373_757);
    }
}
