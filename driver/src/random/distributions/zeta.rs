//! Sums of `1 / k^theta`, at the same small cost for any number of terms.

/// How many terms are added one by one; beyond them the formula is exact to the last digits.
const DIRECT: u64 = 64;

/// `zeta(n) = sum of 1 / k^theta for k = 1 ... n`.
///
/// Uses the Euler-Maclaurin formula (DLMF 2.10.1): the sum differs from its integral by `n^-theta /
/// 2`, terms with Bernoulli numbers, and a constant. The constant follows from the sum of the first
/// terms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zeta {
    theta: f64,
    constant: f64,
}

impl Zeta {
    /// The sums for one exponent.
    pub fn new(theta: f64) -> Self {
        Zeta {
            theta,
            constant: direct(DIRECT, theta) - smooth(DIRECT, theta),
        }
    }

    /// The sum of the first `n` terms.
    pub fn at(&self, n: u64) -> f64 {
        if n <= DIRECT {
            direct(n, self.theta)
        } else {
            self.constant + smooth(n, self.theta)
        }
    }
}

fn direct(n: u64, theta: f64) -> f64 {
    (1..=n).rev().map(|k| (k as f64).powf(-theta)).sum()
}

/// The sum, except for a constant.
fn smooth(n: u64, theta: f64) -> f64 {
    let n = n as f64;
    let log = n.ln();
    // `(n^(1 - theta) - 1) / (1 - theta)` without loss of digits near 1.
    let integral = ((1.0 - theta) * log).exp_m1() / (1.0 - theta);
    let term = (-theta * log).exp();
    let third = theta * (theta + 1.0) * (theta + 2.0) / (720.0 * n * n * n);
    integral + term * (0.5 - theta / (12.0 * n) + third)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_direct_sum() {
        for theta in [0.01, 0.5, 0.8, 0.99, 0.999_999, 1.000_001, 1.2, 2.5, 10.0] {
            let zeta = Zeta::new(theta);
            for n in [1, 2, 63, 64, 65, 1000, 1_000_000] {
                let (value, sum) = (zeta.at(n), direct(n, theta));
                let error = (value / sum - 1.0).abs();
                assert!(error < 1e-12, "theta {theta}, n {n}: {value}, {sum}");
            }
        }
    }

    /// YCSB has the sum of 10^10 terms as a constant, computed term by term.
    #[test]
    fn it_is_the_constant_of_ycsb() {
        let error = Zeta::new(0.99).at(10_000_000_000) - 26.469_028_201_783_02;
        assert!(error.abs() < 1e-8, "{error}");
    }
}
