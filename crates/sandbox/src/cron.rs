//! Cron expressions of pipeline schedules and freeze periods: five fields, or six with the seconds first.

use jiff::Span;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// The minimum and maximum of a field, and the names of its numbers. The first name is for the
/// minimum, the second for the next number, and so on.
type FieldRange = (u32, u32, &'static [&'static str]);

/// The range of the optional first field, the seconds. Their values are ignored.
const SECONDS_RANGE: FieldRange = (0, 59, &[]);
/// The bit for "the last day of the month". It is bit 0, because the days use the bits 1 to 31.
const LAST_DAY_BIT: u64 = 1;
const FIELD_RANGES: [FieldRange; 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 7, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Shortcuts for whole expressions.
const SHORTCUTS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The number of days to search for the next time. Every period of eight years has a 29th of
/// February.
const MAX_DAYS: i32 = 366 * 8;

/// A parsed cron expression.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cron {
    /// For each field, a bit for each matching number.
    bits: [u64; 5],
    /// True if the field starts with `*`. The first item is for the day of the month, the second
    /// for the day of the week. If both fields are restricted, a day needs to match only one of
    /// them.
    are_days_unrestricted: [bool; 2],
}

impl Cron {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = SHORTCUTS
            .iter()
            .find(|(word, _)| *word == text)
            .map_or(text, |(_, expression)| *expression);
        let mut fields: Vec<&str> = text.split_whitespace().collect();
        if fields.len() > FIELD_RANGES.len() {
            let seconds = fields.remove(0);
            seconds
                .split(',')
                .try_for_each(|list_item| parse_numbers(list_item, SECONDS_RANGE).map(drop))?;
        }
        let fields: [&str; 5] = fields.try_into().ok()?;
        let mut bits = [0; 5];
        for ((bits, text), field_range) in bits.iter_mut().zip(fields).zip(FIELD_RANGES) {
            for list_item in text.split(',') {
                *bits |= match list_item {
                    "L" | "l" if field_range == FIELD_RANGES[2] => LAST_DAY_BIT,
                    numbers => parse_numbers(numbers, field_range)?,
                };
            }
        }
        // Both 0 and 7 are Sunday.
        bits[4] |= bits[4] >> 7;
        Some(Self {
            bits,
            are_days_unrestricted: [fields[2].starts_with('*'), fields[4].starts_with('*')],
        })
    }

    fn matches_number(&self, field_index: usize, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.bits[field_index] >> number & 1 == 1)
    }

    fn matches_day(&self, date: Date) -> bool {
        let matches_last_day =
            self.bits[2] & LAST_DAY_BIT != 0 && date.day() == date.days_in_month();
        let matches_month_day = matches_last_day || self.matches_number(2, date.day());
        let matches_weekday = self.matches_number(4, date.weekday().to_sunday_zero_offset());
        let matches_day_fields = match self.are_days_unrestricted {
            [false, false] => matches_month_day || matches_weekday,
            _ => matches_month_day && matches_weekday,
        };
        matches_day_fields && self.matches_number(3, date.month())
    }

    /// The first matching time after `start_time`, in UTC. `None` if no day matches.
    pub(crate) fn next_time(&self, start_time: Timestamp) -> Option<Timestamp> {
        let start_datetime = start_time.to_zoned(TimeZone::UTC).datetime();
        let all_minutes = (0..24_i8).flat_map(|hour| (0..60_i8).map(move |minute| (hour, minute)));
        let matching_minutes = all_minutes.filter(|(hour, minute)| {
            self.matches_number(1, *hour) && self.matches_number(0, *minute)
        });
        for days_ahead in 0..MAX_DAYS {
            let date = start_datetime.date().checked_add(Span::new().days(days_ahead)).ok()?;
            if !self.matches_day(date) {
                continue;
            }
            let mut candidates =
                matching_minutes.clone().map(|(hour, minute)| date.at(hour, minute, 0, 0));
            if let Some(time) = candidates.find(|time: &DateTime| *time > start_datetime) {
                return time.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp());
            }
        }
        None
    }
}

/// Parses an item of a field: `*`, one number or a range, each with or without a step. Returns one bit
/// for each number that the item matches.
fn parse_numbers(list_item: &str, field_range: FieldRange) -> Option<u64> {
    let (min, max, _) = field_range;
    let (range, step) = match list_item.split_once('/') {
        Some((range, step)) => (range, step.parse().ok().filter(|step| *step > 0)?),
        None => (list_item, 1),
    };
    let (from, to) = match range.split_once('-') {
        _ if range == "*" => (min, max),
        Some((from, to)) => (parse_number(from, field_range)?, parse_number(to, field_range)?),
        None if list_item.contains('/') => (parse_number(range, field_range)?, max),
        None => (parse_number(range, field_range)?, parse_number(range, field_range)?),
    };
    (from <= to).then(|| (from..=to).step_by(step).fold(0, |bits, number| bits | 1 << number))
}

/// A number in a field, as digits or by its name.
fn parse_number(text: &str, (min, max, names): FieldRange) -> Option<u32> {
    let number = match names.iter().position(|name| text.eq_ignore_ascii_case(name)) {
        Some(index) => u32::try_from(index).ok()? + min,
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
        None => return None,
    };
    (min..=max).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_expressions_are_parsed() {
        for (text, is_valid) in [
            ("0 4 * * *", true),
            ("*/15 0-6,22 1,15 jan-Mar mon-fri", true),
            ("5/10 4 * * 7", true),
            ("@daily", true),
            ("", false),
            ("* * * *", false),
            ("0 0 1 * * *", true),
            ("60 0 1 * * *", false),
            ("0 1 * * * UTC", false),
            ("0 1 L * *", true),
            ("0 L * * *", false),
            ("60 * * * *", false),
            ("* * 0 * *", false),
            ("*/0 * * * *", false),
            ("5-1 * * * *", false),
            ("+5 * * * *", false),
            ("@never", false),
            ("every day", false),
        ] {
            assert_eq!(Cron::parse(text).is_some(), is_valid, "{text}");
        }
        assert_eq!(Cron::parse("0 4 * * 7"), Cron::parse("0 4 * * sun,7"));
    }

    #[test]
    fn the_next_time_is_found() {
        for (text, next) in [
            ("0 4 * * *", Some("2030-01-02T04:00:00Z")),
            ("30 12 * * *", Some("2030-01-02T12:30:00Z")),
            ("31 12 * * *", Some("2030-01-01T12:31:00Z")),
            ("0 0 29 2 *", Some("2032-02-29T00:00:00Z")),
            ("0 0 * * sun", Some("2030-01-06T00:00:00Z")),
            // The day of the month or the day of the week must match.
            ("0 0 3 * sun", Some("2030-01-03T00:00:00Z")),
            ("0 0 30 2 *", None),
            ("0 0 L 2 *", Some("2030-02-28T00:00:00Z")),
        ] {
            let now = "2030-01-01T12:30:00Z".parse().expect("a time");
            let next = next.map(|next| next.parse().expect("a time"));
            assert_eq!(Cron::parse(text).and_then(|cron| cron.next_time(now)), next, "{text}");
        }
    }
}
