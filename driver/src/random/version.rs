//! A version names one write of a run; the value of the write is a function of it.

const COUNT_BITS: u32 = 44;
const THREAD_BITS: u32 = 12;

/// One write: the `count`-th of a thread in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Version(u64);

impl Version {
    /// The number of threads that versions can distinguish.
    pub const THREADS_MAX: usize = (1 << THREAD_BITS) - 1;
    /// The number of phases that versions can distinguish.
    pub const PHASES_MAX: usize = (1 << (u64::BITS - THREAD_BITS - COUNT_BITS)) - 1;

    /// Phase and thread must be at most their maxima. A count of 2^44 would take years to reach.
    #[inline]
    pub fn new(phase: usize, thread: usize, count: u64) -> Self {
        let origin = (phase as u64) << THREAD_BITS | thread as u64;
        Version(origin << COUNT_BITS | count)
    }

    /// Another write of the same thread in the same phase.
    #[inline]
    #[must_use]
    pub fn with_count(self, count: u64) -> Self {
        Version(self.origin() << COUNT_BITS | count)
    }

    /// Phase and thread together.
    #[inline]
    pub fn origin(self) -> u64 {
        self.0 >> COUNT_BITS
    }

    /// The phase that wrote it.
    #[inline]
    pub fn phase(self) -> usize {
        (self.0 >> (COUNT_BITS + THREAD_BITS)) as usize
    }

    /// The thread of that phase.
    #[inline]
    pub fn thread(self) -> usize {
        (self.origin() & ((1 << THREAD_BITS) - 1)) as usize
    }

    /// The whole version in 64 bits.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The number of the write within its phase and thread.
    #[inline]
    pub fn count(self) -> u64 {
        self.0 & ((1 << COUNT_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn versions_do_not_collide(a: (u8, u8, u32), b: (u8, u8, u32)) {
            let make = |(phase, thread, count): (u8, u8, u32)| {
                Version::new(phase.into(), thread.into(), count.into())
            };
            prop_assert_eq!(make(a) == make(b), a == b);
            prop_assert_eq!(make(a).count(), u64::from(a.2));
            prop_assert_eq!(make(a).phase(), usize::from(a.0));
            prop_assert_eq!(make(a).thread(), usize::from(a.1));
        }
    }
}
