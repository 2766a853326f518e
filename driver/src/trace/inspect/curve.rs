//! Hotness: the share of the accesses that goes to the hottest keys.

use super::summary::Curve;

/// The most points of a curve.
const POINTS_MAX: usize = 400;
/// The factor from one rank to the next.
const STEP: f64 = 1.03;

/// The accesses of a key, and the number of keys that it represents.
pub type Weighted = (f64, f64);

/// The curve of `keys`, which had `accesses` in all; `None` if there were none.
///
/// Shares refer to the estimated sum, not to `accesses`, so that the last one is 1.
pub fn curve(mut keys: Vec<Weighted>, accesses: u64) -> Option<Curve> {
    keys.retain(|(count, _)| *count > 0.0);
    keys.sort_unstable_by(|one, two| two.0.total_cmp(&one.0));
    let total: f64 = keys.iter().map(|(count, weight)| count * weight).sum();
    let all: f64 = keys.iter().map(|(_, weight)| weight).sum();
    let last = keys.len().checked_sub(1)?;
    let step = STEP.max(all.powf(1.0 / (POINTS_MAX as f64 - 80.0)));
    let (mut rank, mut sum, mut wanted) = (0.0, 0.0, 1.0);
    let mut points = Vec::new();
    for (index, (count, weight)) in keys.into_iter().enumerate() {
        rank += weight;
        sum += count * weight;
        if rank >= wanted || index == last {
            points.push((rank, count, sum / total));
            wanted = (rank * step).max(rank + 1.0);
        }
    }
    Some(Curve {
        accesses,
        keys: all,
        points,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_bounded_and_ends_at_one() {
        let keys = (1..=500_000)
            .map(|rank| (1e6 / f64::from(rank), 4.0))
            .collect();
        let curve = curve(keys, 7).unwrap();
        assert!(curve.points.len() <= POINTS_MAX, "{}", curve.points.len());
        assert_eq!((curve.keys, curve.accesses), (2e6, 7));
        let last = curve.points.last().unwrap();
        assert!(last.0 == 2e6 && (last.2 - 1.0).abs() < 1e-9);
        let ascending = |pair: &[(f64, f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1;
        assert!(curve.points.windows(2).all(ascending));
        assert!(super::curve(Vec::new(), 0).is_none());
    }

    #[test]
    fn the_first_ranks_are_all_there() {
        let keys = vec![(5.0, 1.0), (3.0, 1.0), (0.0, 1.0), (2.0, 1.0)];
        let points = curve(keys, 10).unwrap().points;
        assert_eq!(points, [(1.0, 5.0, 0.5), (2.0, 3.0, 0.8), (3.0, 2.0, 1.0)]);
    }
}
