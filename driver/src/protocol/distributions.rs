//! Distributions of keys, sizes and lengths; `docs/workloads.md` says what each means.

use serde::{Deserialize, Serialize};

/// How keys are chosen among those that exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "distribution", rename_all = "snake_case", deny_unknown_fields)]
pub enum KeyDistribution {
    /// Uniform.
    Uniform,
    /// One key after another, in the order of their numbers, then again from the first.
    Sequential,
    /// The k-th key with a share of `1 / k^theta`.
    Zipfian {
        /// Exponent, above 0 and not 1.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        theta: f64,
    },
    /// As YCSB scatters a Zipfian over the keys.
    ScrambledZipfian {
        /// Exponent, above 0 and not 1.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        theta: f64,
        /// Keys over which it is scattered; a key that does not exist yet is drawn again. `records`
        /// where absent.
        #[cfg_attr(test, schemars(range(min = 1)))]
        items: Option<u64>,
    },
    /// The k-th newest key with a share of `1 / k^theta`.
    Latest {
        /// Exponent, above 0 and not 1.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        theta: f64,
    },
    /// A share of the operations on a share of the keys, uniformly on either side.
    Hotspot {
        /// Share of the keys that are hot.
        hot_data: f64,
        /// Share of the operations that go there.
        hot_operations: f64,
    },
    /// YCSB's exponential: `percentile` per cent of the operations on the newest `fraction` of keys.
    Exponential {
        /// Per cent of the operations.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        percentile: f64,
        /// Share of the keys.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        fraction: f64,
    },
    /// The first x ranks have a share of `a x^b`, and a hash sends each rank to a key: db_bench's
    /// `key_dist_a`, `key_dist_b`.
    Power {
        /// Factor.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        a: f64,
        /// Exponent.
        b: f64,
        /// Number of different random numbers that ranks are made of: in db_bench, the number of
        /// keys. Where absent, as many as a float can tell apart.
        #[cfg_attr(test, schemars(range(min = 1)))]
        grains: Option<u64>,
    },
    /// Key ranges, the hotness of which is the sum of two exponentials of their rank.
    Ranges {
        /// Ranges of equal width.
        #[cfg_attr(test, schemars(range(min = 1)))]
        ranges: u64,
        /// Coefficient of `a exp(b x) + c exp(d x)`.
        a: f64,
        /// See `a`.
        b: f64,
        /// See `a`.
        c: f64,
        /// See `a`.
        d: f64,
        /// `a` of a `power` of the keys within a range; uniform where absent.
        key_a: Option<f64>,
        /// `b` of that `power`; given together with `key_a`.
        key_b: Option<f64>,
        /// `grains` of that `power`: in db_bench, as many as a range has keys.
        #[cfg_attr(test, schemars(range(min = 1)))]
        key_grains: Option<u64>,
    },
}

/// How sizes and lengths are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "distribution", rename_all = "snake_case", deny_unknown_fields)]
pub enum SizeDistribution {
    /// Always the same size.
    Constant {
        /// The size.
        size: u64,
    },
    /// Uniform.
    Uniform {
        /// Smallest.
        low: u64,
        /// Largest.
        high: u64,
    },
    /// `low` most often, by YCSB's Zipfian.
    Zipfian {
        /// Smallest.
        low: u64,
        /// Largest.
        high: u64,
        /// Exponent, above 0 and not 1.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        theta: f64,
    },
    /// Normal, conditioned on the bounds, rounded.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        sd: f64,
        /// Smallest.
        low: u64,
        /// Largest.
        high: u64,
    },
    /// Generalised Pareto, conditioned on the bounds, rounded down.
    Pareto {
        /// Location.
        theta: f64,
        /// Shape.
        k: f64,
        /// Scale.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        sigma: f64,
        /// Smallest.
        low: u64,
        /// Largest.
        high: u64,
    },
    /// A row of fields as YCSB-cpp writes it: before name and value of each their length, 4 bytes.
    Row {
        /// Number of fields.
        #[cfg_attr(test, schemars(range(min = 1)))]
        fields: u64,
        /// Bytes of the names of all fields together.
        names_bytes: u64,
        /// Bytes of the value of a field.
        length: Box<SizeDistribution>,
    },
    /// Sizes with weights.
    Table {
        /// Pairs of size and weight.
        #[cfg_attr(test, schemars(length(min = 1)))]
        sizes: Vec<(u64, f64)>,
    },
}
