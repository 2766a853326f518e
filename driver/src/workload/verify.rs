//! The read-back: does the database hold what was written?

use crate::engine::{Database, Result};
use crate::random::{KeyWriter, Version};

use super::ledger::{KeyState, Ledger, BOUND};
use super::values::Values;

/// The most bytes of values that are read back, so that huge values do not take long. The least
/// number of keys that the request names is checked in any case.
const READ_BACK_BYTES: usize = 256 << 20;

/// The result of the read-back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verification {
    /// Keys looked up.
    pub keys_checked: u64,
    /// Keys that were written and are missing, or were deleted and exist.
    pub keys_lost: u64,
    /// Keys with another value than their last writers wrote.
    pub keys_wrong: u64,
}

/// How many keys may be read back, given the mean size of their values.
fn affordable(expectations: &[(u64, &[KeyState])], values: &Values) -> usize {
    let sizes = expectations.iter().map(|(_, states)| match states[0] {
        KeyState::Written(version) => values.value(version).len(),
        KeyState::Deleted => 0,
    });
    let bytes: usize = sizes.sum();
    let mean = bytes / expectations.len().max(1);
    READ_BACK_BYTES / mean.max(1)
}

impl Verification {
    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Verification) -> Verification {
        Verification {
            keys_checked: self.keys_checked + other.keys_checked,
            keys_lost: self.keys_lost + other.keys_lost,
            keys_wrong: self.keys_wrong + other.keys_wrong,
        }
    }
}

/// Looks up the ledger's keys, at least `keys_min` of them, in `database`.
pub fn verify(
    database: &dyn Database,
    ledger: &Ledger,
    values: &Values,
    mut keys: KeyWriter,
    keys_min: usize,
) -> Result<Verification> {
    let mut session = database.session();
    let mut verification = Verification::default();
    let expectations = ledger.expectations();
    let checked = expectations
        .len()
        .min(affordable(&expectations, values).min(BOUND).max(keys_min));
    // An even stride keeps the checked keys spread over the whole key space.
    for position in 0..checked {
        let (index, states) = expectations[position * expectations.len() / checked];
        let written = || {
            states
                .iter()
                .filter_map(|state| Option::<Version>::from(*state))
        };
        let mut right = false;
        let found = session.get(keys.write(index), &mut |value| {
            right = written().any(|version| values.value(version) == value);
        })?;
        verification.keys_checked += 1;
        let may_be_absent = written().count() < states.len();
        match (found, right) {
            (false, _) if !may_be_absent => verification.keys_lost += 1,
            (true, false) if written().next().is_none() => verification.keys_lost += 1,
            (true, false) => verification.keys_wrong += 1,
            _ => {}
        }
    }
    Ok(verification)
}
