//! Which of the existing keys an operation uses.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::protocol::KeyDistribution;
use crate::random::fnv1a;

use super::hotness::{PowerLaw, Ranges};
use super::{below, unit, Zipfian};

/// The number of ranks that YCSB scatters over the keys, whatever their number.
const YCSB_RANKS: u64 = 10_000_000_000;

/// Positions of the existing keys, in the order in which they were inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The oldest key that was not deleted as the oldest.
    pub begin: u64,
    /// One beyond the newest key.
    pub end: u64,
}

/// Draws positions for one thread.
///
/// As in YCSB, most distributions cover the keys that exist when the phase begins; `latest`,
/// `exponential` and `scrambled_zipfian` also cover the keys that are inserted. If the oldest keys
/// are deleted one after another, every distribution covers the keys that are left.
#[derive(Debug, Clone)]
pub struct KeyChooser {
    draw: Draw,
    records: u64,
    moving: bool,
}

#[derive(Debug, Clone)]
enum Draw {
    Uniform,
    Sequential { next: u64, step: u64 },
    Zipfian(Zipfian),
    Scrambled { ranks: Zipfian, items: u64 },
    Latest(Zipfian),
    Hotspot { data: f64, operations: f64 },
    Exponential { gamma: f64 },
    Power(PowerLaw),
    Ranges(Ranges),
}

impl KeyChooser {
    /// A chooser for `of`. `records` keys (at least one) exist when the phase begins; `moving` if
    /// the phase deletes the oldest keys.
    pub fn new(of: &KeyDistribution, records: u64, moving: bool) -> Self {
        let draw = match *of {
            KeyDistribution::Uniform => Draw::Uniform,
            KeyDistribution::Sequential => Draw::Sequential { next: 0, step: 1 },
            KeyDistribution::Zipfian { theta } => Draw::Zipfian(Zipfian::new(records, theta)),
            KeyDistribution::ScrambledZipfian { theta, items } => Draw::Scrambled {
                ranks: Zipfian::new(YCSB_RANKS, theta),
                items: items.unwrap_or(records),
            },
            KeyDistribution::Latest { theta } => Draw::Latest(Zipfian::new(records, theta)),
            KeyDistribution::Hotspot {
                hot_data,
                hot_operations,
            } => Draw::Hotspot {
                data: hot_data,
                operations: hot_operations,
            },
            KeyDistribution::Exponential {
                percentile,
                fraction,
            } => Draw::Exponential {
                gamma: -(-percentile / 100.0).ln_1p() / (records as f64 * fraction),
            },
            KeyDistribution::Power { a, b, grains } => Draw::Power(PowerLaw::new(a, b, grains)),
            KeyDistribution::Ranges {
                ranges,
                a,
                b,
                c,
                d,
                key_a,
                key_b,
                key_grains,
            } => {
                let power = key_a.zip(key_b);
                let power = power.map(|(a, b)| PowerLaw::new(a, b, key_grains));
                Draw::Ranges(Ranges::new(records, ranges, [a, b, c, d], power))
            }
        };
        KeyChooser {
            draw,
            records,
            moving,
        }
    }

    /// The same for thread `thread` of `threads`. Threads divide a sequence and take turns, one key
    /// each. All other draws are independent.
    pub fn for_thread(&self, thread: usize, threads: usize) -> Self {
        let mut own = self.clone();
        if let Draw::Sequential { next, step } = &mut own.draw {
            (*next, *step) = (thread as u64, threads as u64);
        }
        own
    }

    /// Whether the draws depend on which inserts are done.
    pub fn sees_inserts(&self) -> bool {
        let grows = matches!(
            self.draw,
            Draw::Latest(_) | Draw::Exponential { .. } | Draw::Scrambled { .. }
        );
        grows || self.moving
    }

    /// The next position, one of `live`, which has at least one.
    #[inline]
    pub fn draw(&mut self, random: &mut Xoshiro256PlusPlus, live: Span) -> u64 {
        let live_count = live.end - live.begin;
        let (begin, count) = match self.moving {
            true => (live.begin, live_count),
            false => (0, self.records),
        };
        match &mut self.draw {
            Draw::Uniform => begin + below(random.random(), count),
            Draw::Sequential { next, step } => {
                let at = *next % count;
                *next += *step;
                begin + at
            }
            Draw::Zipfian(ranks) => {
                ranks.resize(count);
                begin + ranks.rank(unit(random.random()))
            }
            Draw::Scrambled { ranks, items } => loop {
                let position = fnv1a(ranks.rank(unit(random.random()))) % *items;
                if position < live.end {
                    return position;
                }
            },
            Draw::Latest(ranks) => {
                // YCSB draws over as many ranks as the newest key's number, so never the very first
                // key. It computes `eta` once, from the number of records at the beginning; here it
                // follows the records that there are.
                ranks.resize((live_count - 1).max(1));
                live.end - 1 - ranks.rank(unit(random.random()))
            }
            Draw::Hotspot { data, operations } => {
                let hot = ((count as f64 * *data) as u64).clamp(1, count);
                let is_hot = unit(random.random()) < *operations || hot == count;
                let bits = random.random();
                begin
                    + if is_hot {
                        below(bits, hot)
                    } else {
                        hot + below(bits, count - hot)
                    }
            }
            Draw::Exponential { gamma } => {
                // Conditional on not going beyond the oldest key; YCSB draws again in that case.
                let whole = -(-*gamma * live_count as f64).exp_m1();
                let back = -(-unit(random.random()) * whole).ln_1p() / *gamma;
                live.end - 1 - (back as u64).min(live_count - 1)
            }
            Draw::Power(law) => law.key(random.random(), self.records, 0),
            Draw::Ranges(ranges) => ranges.key(random.random(), random.random()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hotness::{folded_shares, key_of_rank};
    use super::super::testing::{assert_fits, zipf_shares};
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;

    const DRAWS: usize = 200_000;

    fn counts(of: &KeyDistribution, records: u64, live: Span) -> Vec<u64> {
        let moving = live.begin > 0;
        let mut chooser = KeyChooser::new(of, records, moving);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut counts = vec![0; live.end as usize];
        for _ in 0..DRAWS {
            counts[chooser.draw(&mut random, live) as usize] += 1;
        }
        counts
    }

    fn first(end: u64) -> Span {
        Span { begin: 0, end }
    }

    #[test]
    fn uniform_zipfian_and_sequential_are_over_the_keys_of_the_beginning() {
        // Ten more were inserted since.
        let live = first(110);
        let uniform = counts(&KeyDistribution::Uniform, 100, live);
        assert_fits("uniform", &uniform[..100], &[0.01; 100]);
        let zipfian = counts(&KeyDistribution::Zipfian { theta: 0.8 }, 100, live);
        assert_fits("zipfian", &zipfian[..100], &zipf_shares(100, 0.8));
        let sequential = counts(&KeyDistribution::Sequential, 100, live);
        assert_eq!(sequential[..100], [DRAWS as u64 / 100; 100]);
        for counts in [uniform, zipfian, sequential] {
            assert_eq!(counts[100..], [0; 10]);
        }
    }

    #[test]
    fn a_sequence_is_divided_among_threads() {
        let chooser = KeyChooser::new(&KeyDistribution::Sequential, 10, false);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
        let mut take = |thread| -> Vec<u64> {
            let mut own = chooser.for_thread(thread, 3);
            (0..5).map(|_| own.draw(&mut random, first(10))).collect()
        };
        assert_eq!(take(0), [0, 3, 6, 9, 2]);
        assert_eq!(take(2), [2, 5, 8, 1, 4]);
    }

    /// With a hash, several ranks meet on one key. The shares of the most frequent hundred thousand
    /// ranks are added up. Each of the other ranks is rare, so their total is spread over all keys
    /// alike.
    #[test]
    fn scrambled_zipfian_is_the_zipfian_scattered() {
        let (records, items, theta) = (1000u64, 1200u64, 0.99);
        let of = KeyDistribution::ScrambledZipfian {
            theta,
            items: Some(items),
        };
        let ranks = Zipfian::new(YCSB_RANKS, theta);
        let known = 100_000;
        let mut shares = vec![(1.0 - ranks.share_below(known)) / items as f64; items as usize];
        for rank in 0..known {
            let share = ranks.share_below(rank + 1) - ranks.share_below(rank);
            shares[(fnv1a(rank) % items) as usize] += share;
        }
        shares.truncate(records as usize);
        let whole: f64 = shares.iter().sum();
        let shares: Vec<f64> = shares.iter().map(|share| share / whole).collect();
        assert_fits("scrambled", &counts(&of, records, first(records)), &shares);
        // If more of them are inserted, those are found, too.
        assert!(counts(&of, records, first(items))[1000..]
            .iter()
            .all(|count| *count > 0));
    }

    #[test]
    fn latest_prefers_the_newest() {
        let of = KeyDistribution::Latest { theta: 0.99 };
        let mut shares = zipf_shares(499, 0.99);
        shares.push(0.0);
        shares.reverse();
        assert_fits("latest", &counts(&of, 100, first(500)), &shares);
    }

    #[test]
    fn hotspot_divides_keys_and_operations() {
        let of = KeyDistribution::Hotspot {
            hot_data: 0.2,
            hot_operations: 0.8,
        };
        let mut shares = vec![0.8 / 20.0; 20];
        shares.resize(100, 0.2 / 80.0);
        assert_fits("hotspot", &counts(&of, 100, first(100)), &shares);
        let all = KeyDistribution::Hotspot {
            hot_data: 1.0,
            hot_operations: 0.5,
        };
        assert_fits("all hot", &counts(&all, 100, first(100)), &[0.01; 100]);
    }

    #[test]
    fn exponential_is_on_the_newest_fraction() {
        for fraction in [0.5, 2.0] {
            let of = KeyDistribution::Exponential {
                percentile: 95.0,
                fraction,
            };
            // 95 % within the newest half of the original hundred keys, or of twice as many as
            // these; there are 150 by now.
            let below = |back: f64| 1.0 - 0.05f64.powf(back / (100.0 * fraction));
            let mut shares: Vec<f64> = (0..150u32)
                .map(|back| (below(f64::from(back) + 1.0) - below(f64::from(back))) / below(150.0))
                .collect();
            shares.reverse();
            assert_fits("exponential", &counts(&of, 100, first(150)), &shares);
        }
    }

    #[test]
    fn power_is_scattered_over_all_keys() {
        let (a, b) = (0.05, 0.6);
        let of = KeyDistribution::Power { a, b, grains: None };
        let shares = folded_shares(a, b, 100, |rank| key_of_rank(rank, 100, 0));
        // 147 ranks; none of them leads to a key that was inserted since.
        assert_fits("power", &counts(&of, 100, first(110))[..100], &shares);
    }

    #[test]
    fn where_the_oldest_are_deleted_the_rest_is_drawn_from() {
        let live = Span { begin: 50, end: 90 };
        let uniform = counts(&KeyDistribution::Uniform, 100, live);
        assert_fits("moving", &uniform[50..], &[1.0 / 40.0; 40]);
    }

    fn any_distribution() -> impl Strategy<Value = KeyDistribution> {
        let theta = 0.1f64..0.99;
        prop_oneof![
            Just(KeyDistribution::Uniform),
            Just(KeyDistribution::Sequential),
            theta
                .clone()
                .prop_map(|theta| KeyDistribution::Zipfian { theta }),
            theta
                .clone()
                .prop_map(|theta| KeyDistribution::ScrambledZipfian { theta, items: None }),
            theta.prop_map(|theta| KeyDistribution::Latest { theta }),
            (0.01f64..1.0, 0.0f64..1.0).prop_map(|(hot_data, hot_operations)| {
                KeyDistribution::Hotspot {
                    hot_data,
                    hot_operations,
                }
            }),
            (1.0f64..99.9, 0.01f64..1.0).prop_map(|(percentile, fraction)| {
                KeyDistribution::Exponential {
                    percentile,
                    fraction,
                }
            }),
            (1e-4f64..1.0, 0.05f64..2.0, prop::option::of(1u64..1 << 40))
                .prop_map(|(a, b, grains)| KeyDistribution::Power { a, b, grains }),
            (1u64..4, 1e-4f64..1.0, 0.05f64..2.0).prop_map(|(ranges, key_a, key_b)| {
                KeyDistribution::Ranges {
                    ranges,
                    a: 1.0,
                    b: -1.0,
                    c: 0.1,
                    d: -0.1,
                    key_a: Some(key_a),
                    key_b: Some(key_b),
                    key_grains: None,
                }
            }),
        ]
    }

    proptest! {
        #[test]
        fn positions_exist_and_follow_the_seed(
            of in any_distribution(), records in 4u64..1 << 40, inserted in 0u64..1000, seed: u64,
        ) {
            let live = first(records + inserted);
            let take = || {
                let mut chooser = KeyChooser::new(&of, records, false);
                let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
                (0..50).map(|_| chooser.draw(&mut random, live)).collect::<Vec<u64>>()
            };
            let taken = take();
            prop_assert!(taken.iter().all(|position| *position < live.end));
            prop_assert_eq!(taken, take());
        }

        #[test]
        fn a_window_of_any_width_is_kept_to(
            of in any_distribution(), begin in 0u64..1000, width in 1u64..50, seed: u64,
        ) {
            let scattered = matches!(
                of,
                KeyDistribution::ScrambledZipfian { .. }
                    | KeyDistribution::Power { .. }
                    | KeyDistribution::Ranges { .. }
            );
            prop_assume!(!scattered);
            let live = Span { begin, end: begin + width };
            let mut chooser = KeyChooser::new(&of, 100, true);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            for _ in 0..20 {
                let position = chooser.draw(&mut random, live);
                prop_assert!((live.begin..live.end).contains(&position));
            }
        }
    }
}
