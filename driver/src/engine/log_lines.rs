//! Reading the engines' information logs: lines in bounded memory, and their local-time stamps.

use std::io::{BufRead, Read};

/// The longest part of a line that is kept. RocksDB's longest lines list the input files of a
/// compaction: a megabyte is some 100,000 files.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Calls `each` with every line of `reader`, without its end, at most a megabyte of each.
pub fn for_each_line(mut reader: impl BufRead, mut each: impl FnMut(&[u8])) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut reader)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?
            == 0
        {
            return Ok(());
        }
        let whole = line.ends_with(b"\n");
        if whole {
            line.pop();
        } else {
            reader.skip_until(b'\n')?;
        }
        each(&line);
    }
}

/// Converts the engines' time stamps, `2026/11/21-02:20:44.221322` in local time, into microseconds
/// since the epoch.
///
/// Both engines write stamps with `localtime_r`. The same function in the same process gives the
/// same offset here, whatever `TZ` says.
#[derive(Debug, Clone, Copy)]
pub struct LogClock {
    offset_us: i64,
}

impl LogClock {
    /// A clock for time stamps between two instants. `None` if the offset from UTC changes between
    /// them (a change to or from summer time), because such stamps are ambiguous.
    pub fn between(from_us: u64, to_us: u64) -> Option<Self> {
        let offset_us = offset_us(from_us)?;
        (offset_us == self::offset_us(to_us)?).then_some(Self { offset_us })
    }

    /// The instant at the beginning of `line`, if there is one.
    pub fn instant_us(&self, line: &[u8]) -> Option<u64> {
        u64::try_from(civil_us(line)? - self.offset_us).ok()
    }
}

/// Local time minus UTC at an instant, in microseconds.
fn offset_us(unix_us: u64) -> Option<i64> {
    let seconds = libc::time_t::try_from(unix_us / 1_000_000).ok()?;
    let mut parts = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid for the call, and a `tm` of zeroes is a valid one.
    let parts = unsafe {
        if libc::localtime_r(&raw const seconds, parts.as_mut_ptr()).is_null() {
            return None;
        }
        parts.assume_init()
    };
    Some(parts.tm_gmtoff * 1_000_000)
}

/// A time stamp read as if it were UTC, in microseconds since the epoch.
fn civil_us(line: &[u8]) -> Option<i64> {
    let stamp = line.get(..26)?;
    let punctuated = [
        (4, b'/'),
        (7, b'/'),
        (10, b'-'),
        (13, b':'),
        (16, b':'),
        (19, b'.'),
    ]
    .iter()
    .all(|&(at, mark)| stamp[at] == mark);
    if !punctuated {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = &stamp[from..to];
        digits.iter().all(u8::is_ascii_digit).then(|| {
            digits
                .iter()
                .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
        })
    };
    let days = days_from_civil(number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let seconds = (number(11, 13)? * 60 + number(14, 16)?) * 60 + number(17, 19)?;
    Some((days * 86_400 + seconds) * 1_000_000 + number(20, 26)?)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar: years are counted from March so that
/// the leap day is the last of its year, and 400 of them have 146,097 days.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Vec<u8>> {
        let mut collected = Vec::new();
        for_each_line(text, |line| collected.push(line.to_vec())).unwrap();
        collected
    }

    #[test]
    fn lines_end_with_or_without_a_line_feed() {
        assert_eq!(
            lines(b"a\n\nb"),
            [b"a".to_vec(), b"".to_vec(), b"b".to_vec()]
        );
        assert!(lines(b"").is_empty());
    }

    #[test]
    fn a_line_too_long_is_cut_and_the_next_one_is_whole() {
        let mut text = vec![b'x'; 3 << 20];
        text.extend_from_slice(b"\nnext\n");
        let long = lines(&text);
        assert_eq!(long.len(), 2);
        assert_eq!(long[0].len(), 1 << 20);
        assert_eq!(long[1], b"next");
    }

    #[test]
    fn stamps_are_read_to_the_microsecond() {
        assert_eq!(civil_us(b"1970/01/01-00:00:00.000000 "), Some(0));
        let stamp = b"2026/11/21-02:20:44.221322 140193237415744 EVENT";
        assert_eq!(civil_us(stamp), Some(1_795_227_644_221_322));
        assert_eq!(
            civil_us(b"2024/02/29-23:59:59.999999"),
            Some(1_709_251_199_999_999)
        );
        assert_eq!(civil_us(b"2026-11-21 02:20:44.221322"), None);
        assert_eq!(civil_us(b"2026/11/21"), None);
        assert_eq!(civil_us(b"2026/11/2x-02:20:44.221322"), None);
    }

    #[test]
    fn the_offset_is_taken_off() {
        let clock = LogClock {
            offset_us: 3_600_000_000,
        };
        assert_eq!(clock.instant_us(b"1970/01/01-01:00:00.000007"), Some(7));
        assert_eq!(clock.instant_us(b"1970/01/01-00:00:00.000000"), None);
    }
}
