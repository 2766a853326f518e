//! What distributions of keys and sizes must satisfy.

use std::fmt::Display;

use crate::protocol::{KeyDistribution, SizeDistribution};
use crate::random::{range_weights, Sizes};

use super::{positive, require, share, Checked};

/// Above this, and very close to 1, the formula of a Zipfian loses its digits.
const THETA_MAX: f64 = 10.0;
const THETA_GAP: f64 = 1e-6;
/// A number that does not exist yet is drawn again; this bound keeps such draws few.
const ITEMS_PER_RECORD_MAX: u64 = 1000;
const RANGES_MAX: u64 = 1 << 20;
const FIELDS_MAX: u64 = 10_000;
/// The largest size or length, so that sums of them cannot overflow.
const SIZE_MAX: u64 = 1 << 40;

/// Checks a distribution over `records` keys, at least one; `moving` if the oldest keys are
/// deleted.
pub fn key_distribution(field: &str, of: &KeyDistribution, records: u64, moving: bool) -> Checked {
    let check = Checks { field };
    if moving {
        let scattered = match of {
            KeyDistribution::ScrambledZipfian { .. } => Some("scrambled_zipfian"),
            KeyDistribution::Power { .. } => Some("power"),
            KeyDistribution::Ranges { .. } => Some("ranges"),
            _ => None,
        };
        let allowed = "uniform, sequential, zipfian, latest, hotspot or exponential, since \
                       delete_oldest moves the keys that there are";
        let found = scattered.unwrap_or_default();
        check.holds(scattered.is_none(), "distribution", found, allowed)?;
    }
    match *of {
        KeyDistribution::Uniform | KeyDistribution::Sequential => Ok(()),
        KeyDistribution::Zipfian { theta } | KeyDistribution::Latest { theta } => {
            check.theta(theta)
        }
        KeyDistribution::ScrambledZipfian { theta, items } => {
            check.theta(theta)?;
            let items = items.unwrap_or(records);
            let most = records.saturating_mul(ITEMS_PER_RECORD_MAX);
            let allowed = format!("{records} (records) to {most}");
            check.holds((records..=most).contains(&items), "items", items, &allowed)
        }
        KeyDistribution::Hotspot {
            hot_data,
            hot_operations,
        } => {
            check.share("hot_data", hot_data)?;
            let sensible = (0.0..=1.0).contains(&hot_operations);
            check.holds(sensible, "hot_operations", hot_operations, "0 to 1")
        }
        KeyDistribution::Exponential {
            percentile,
            fraction,
        } => {
            let sensible = percentile > 0.0 && percentile < 100.0;
            let allowed = "above 0, below 100";
            check.holds(sensible, "percentile", percentile, allowed)?;
            // Above 1, too, as in YCSB: what would fall beyond the oldest key is drawn again.
            check.positive("fraction", fraction)
        }
        KeyDistribution::Power { a, b, grains } => {
            check.share("a", a)?;
            check.positive("b", b)?;
            some_grains(&check, "grains", grains)
        }
        KeyDistribution::Ranges { .. } => ranges(&check, of, records),
    }
}

fn some_grains(check: &Checks<'_>, field: &str, grains: Option<u64>) -> Checked {
    check.holds(grains != Some(0), field, 0, "at least 1")
}

fn ranges(check: &Checks<'_>, of: &KeyDistribution, records: u64) -> Checked {
    let KeyDistribution::Ranges {
        ranges,
        a,
        b,
        c,
        d,
        key_a,
        key_b,
        key_grains,
    } = *of
    else {
        return Ok(());
    };
    let most = records.min(RANGES_MAX);
    let sensible = (1..=most).contains(&ranges);
    check.holds(sensible, "ranges", ranges, &format!("1 to {most}"))?;
    for (name, value) in [("a", a), ("b", b), ("c", c), ("d", d)] {
        check.holds(value.is_finite(), name, value, "a number")?;
    }
    let weights: f64 = range_weights(ranges, [a, b, c, d]).sum();
    let sensible = weights.is_finite() && weights > 0.0;
    let allowed = "parameters by which some range has a share above 0, and none an endless one";
    check.holds(sensible, "a", a, allowed)?;
    match (key_a, key_b) {
        (None, None) => {
            let allowed = "given together with key_a and key_b";
            check.holds(key_grains.is_none(), "key_grains", "it alone", allowed)
        }
        (Some(key_a), Some(key_b)) => {
            check.share("key_a", key_a)?;
            check.positive("key_b", key_b)?;
            some_grains(check, "key_grains", key_grains)
        }
        (Some(_), None) => check.holds(false, "key_b", "nothing", "given together with key_a"),
        (None, Some(_)) => check.holds(false, "key_a", "nothing", "given together with key_b"),
    }
}

/// Checks a distribution of sizes from `least` to `most`.
pub fn size_distribution(field: &str, of: &SizeDistribution, least: u64, most: u64) -> Checked {
    parameters(field, of)?;
    let (check, sizes) = (Checks { field }, Sizes::new(of));
    let allowed = "parameters by which some size between low and high has a share above 0";
    let some = !sizes.is_empty();
    check.holds(some, "distribution", "one without sizes", allowed)?;
    let found = format!("sizes of {} to {}", sizes.smallest(), sizes.largest());
    let within = sizes.smallest() >= least && sizes.largest() <= most;
    require(within, field, found, &format!("{least} to {most}"))
}

fn parameters(field: &str, of: &SizeDistribution) -> Checked {
    let check = Checks { field };
    match of {
        SizeDistribution::Constant { size } => check.size("size", *size),
        SizeDistribution::Uniform { low, high } => check.bounds(*low, *high),
        SizeDistribution::Zipfian { low, high, theta } => {
            check.bounds(*low, *high)?;
            check.theta(*theta)
        }
        SizeDistribution::Normal {
            mean,
            sd,
            low,
            high,
        } => {
            check.bounds(*low, *high)?;
            check.holds(mean.is_finite(), "mean", mean, "a number")?;
            check.positive("sd", *sd)
        }
        SizeDistribution::Pareto {
            theta,
            k,
            sigma,
            low,
            high,
        } => {
            check.bounds(*low, *high)?;
            check.holds(theta.is_finite(), "theta", theta, "a number")?;
            check.holds(k.is_finite(), "k", k, "a number")?;
            check.positive("sigma", *sigma)
        }
        SizeDistribution::Row {
            fields,
            names_bytes,
            length,
        } => {
            let allowed = format!("1 to {FIELDS_MAX}");
            let sensible = (1..=FIELDS_MAX).contains(fields);
            check.holds(sensible, "fields", fields, &allowed)?;
            check.size("names_bytes", *names_bytes)?;
            let nested = matches!(**length, SizeDistribution::Row { .. });
            let allowed = "the length of a field, which is no row";
            check.holds(!nested, "length", "a row", allowed)?;
            parameters(&format!("{field}.length"), length)
        }
        SizeDistribution::Table { sizes } => {
            check.holds(!sizes.is_empty(), "sizes", "none", "at least one")?;
            for (size, weight) in sizes {
                check.size("sizes", *size)?;
                let sensible = weight.is_finite() && *weight >= 0.0;
                check.holds(sensible, "sizes", weight, "weights of 0 or more")?;
            }
            let all: f64 = sizes.iter().map(|(_, weight)| weight).sum();
            let sensible = all.is_finite() && all > 0.0;
            let allowed = "weights of which one is above 0";
            check.holds(sensible, "sizes", "none of any weight", allowed)
        }
    }
}

/// Checks the parameters of one distribution.
struct Checks<'a> {
    field: &'a str,
}

impl Checks<'_> {
    fn holds(&self, holds: bool, name: &str, found: impl Display, allowed: &str) -> Checked {
        require(holds, &format!("{}.{name}", self.field), found, allowed)
    }

    fn theta(&self, theta: f64) -> Checked {
        let sensible = theta > 0.0 && theta <= THETA_MAX && (theta - 1.0).abs() >= THETA_GAP;
        let allowed = format!("above 0, at most {THETA_MAX}, not 1");
        self.holds(sensible, "theta", theta, &allowed)
    }

    fn share(&self, name: &str, value: f64) -> Checked {
        share(&format!("{}.{name}", self.field), value)
    }

    fn positive(&self, name: &str, value: f64) -> Checked {
        positive(&format!("{}.{name}", self.field), value)
    }

    fn size(&self, name: &str, value: u64) -> Checked {
        let allowed = format!("at most {SIZE_MAX}");
        self.holds(value <= SIZE_MAX, name, value, &allowed)
    }

    fn bounds(&self, low: u64, high: u64) -> Checked {
        self.size("high", high)?;
        let allowed = format!("at most {high} (high)");
        self.holds(low <= high, "low", low, &allowed)
    }
}
