//! Stolen time: the hypervisor ran other machines although this one had work to do.

use std::fs;

/// Seconds stolen since the machine started, all cores together; `None` if the kernel does not say.
/// The resolution is a clock tick, a hundredth of a second on most machines.
pub fn stolen_s() -> Option<f64> {
    let ticks = stolen_ticks(&fs::read_to_string("/proc/stat").ok()?)?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The eighth number of the line `cpu` (`proc_stat(5)`), whose numbers are user, nice, system,
/// idle, iowait, irq, softirq, steal.
fn stolen_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    line.split_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_number_of_the_sum_of_all_cores_is_read() {
        let stat = "cpu  1 2 3 4 5 6 7 89 10 11\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
        assert_eq!(stolen_ticks(stat), Some(89));
    }

    #[test]
    fn a_kernel_that_does_not_count_it_leaves_it_unknown() {
        assert_eq!(stolen_ticks("cpu  1 2 3 4 5 6 7\n"), None);
        assert_eq!(stolen_ticks("cpu0 1 2 3 4 5 6 7 8 9 10\n"), None);
        assert_eq!(stolen_ticks(""), None);
    }
}
