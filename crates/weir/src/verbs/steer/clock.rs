//! The time of day, for logs.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now in UTC, as RFC 3339 has it: `2026-03-01T14:05:09Z`.
pub fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    utc(since.map_or(0, |since| since.as_secs()))
}

/// Seconds since 1970 as a date: years of the Gregorian calendar are counted from March, so that a leap day
/// is a year's last, in eras of 400 years, which are all alike.
fn utc(seconds: u64) -> String {
    const ERA_DAYS: u64 = 146_097;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = days + 719_468;
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let day = day - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_772_373_909, "2026-03-01T14:05:09Z"),
        ] {
            assert_eq!(utc(seconds), date);
        }
    }
}
