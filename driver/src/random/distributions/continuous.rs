//! Continuous laws by their quantile functions, restricted to bounds and rounded to whole numbers.

use statrs::function::erf::{erfc, erfc_inv};

/// A normal distribution, conditional on rounding to `low ... high`.
#[derive(Debug, Clone, Copy)]
pub struct Normal {
    mean: f64,
    sd: f64,
    /// The distribution function at the bounds, on the side of the mean where it is precise.
    from: f64,
    to: f64,
    mirrored: bool,
}

impl Normal {
    /// Whether the share between the bounds is too small for a float to differ from zero.
    pub fn is_empty(&self) -> bool {
        (self.to - self.from).abs() < f64::MIN_POSITIVE
    }

    /// The law between `low` and `high`.
    pub fn new(mean: f64, sd: f64, low: u64, high: u64) -> Self {
        let (from, to) = (low as f64 - 0.5, high as f64 + 0.5);
        // Far above the mean, a float cannot tell the distribution function from one. Its mirror is
        // precise.
        let mirrored = from > mean;
        let sign = if mirrored { -1.0 } else { 1.0 };
        let below = |x: f64| 0.5 * erfc(-sign * (x - mean) / sd / std::f64::consts::SQRT_2);
        Normal {
            mean,
            sd,
            from: below(from),
            to: below(to),
            mirrored,
        }
    }

    /// The size at `u`, from 0 to below 1, give or take an error of rounding.
    pub fn at(&self, u: f64) -> u64 {
        let share = self.from + u * (self.to - self.from);
        let deviation = -std::f64::consts::SQRT_2 * erfc_inv(2.0 * share);
        let sign = if self.mirrored { -1.0 } else { 1.0 };
        (self.mean + sign * self.sd * deviation).round() as u64
    }
}

/// A generalised Pareto distribution, conditional on being in `low .. high + 1`.
#[derive(Debug, Clone, Copy)]
pub struct Pareto {
    theta: f64,
    k: f64,
    sigma: f64,
    /// `1 - F`, the share beyond, at the bounds.
    beyond_low: f64,
    beyond_high: f64,
}

impl Pareto {
    /// Whether the share between the bounds is zero.
    pub fn is_empty(&self) -> bool {
        self.beyond_low <= self.beyond_high
    }

    /// The law between `low` and `high`.
    pub fn new([theta, k, sigma]: [f64; 3], low: u64, high: u64) -> Self {
        let beyond = |x: f64| pareto_beyond(x, theta, k, sigma);
        Pareto {
            theta,
            k,
            sigma,
            beyond_low: beyond(low as f64),
            beyond_high: beyond(high as f64 + 1.0),
        }
    }

    /// The size at `u`, from 0 to below 1, give or take an error of rounding.
    pub fn at(&self, u: f64) -> u64 {
        let beyond = self.beyond_low - u * (self.beyond_low - self.beyond_high);
        let z = if self.k == 0.0 {
            -beyond.ln()
        } else {
            (-self.k * beyond.ln()).exp_m1() / self.k
        };
        (self.theta + self.sigma * z).floor() as u64
    }
}

/// `1 - F(x)` of the generalised Pareto distribution with location `theta`, shape `k`, scale `sigma`
/// (Hosking and Wallis, Technometrics 29, 1987, with the sign of `k` that MATLAB and db_bench have).
pub fn pareto_beyond(x: f64, theta: f64, k: f64, sigma: f64) -> f64 {
    let z = (x - theta) / sigma;
    if z <= 0.0 {
        1.0
    } else if k == 0.0 {
        (-z).exp()
    } else {
        (1.0 + k * z).max(0.0).powf(-1.0 / k)
    }
}
