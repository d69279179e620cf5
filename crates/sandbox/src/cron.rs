//! Times that repeat, as in pipeline schedules and freeze periods: the five fields of cron, or six
//! of which the first are seconds: so Fugit reads them, which the service uses.

use jiff::Span;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// The minimum and maximum of a field, and names for the numbers from the minimum on.
type CronField = (u32, u32, &'static [&'static str]);

/// The seconds, which may come first and are ignored.
const SECONDS: CronField = (0, 59, &[]);
/// The bit for "the last day of the month", outside the bits of the days 1 to 31.
const LAST_DAY: u64 = 1;
const FIELDS: [CronField; 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 7, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Words for a whole expression.
const WORDS: [(&str, &str); 7] = [
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

/// The times at which something repeats.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cron {
    /// For each field, a bit for each number.
    bits: [u64; 5],
    /// True if all days of the month are allowed, and all days of the week. If both are restricted,
    /// one of them is enough.
    is_unrestricted: [bool; 2],
}

impl Cron {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = WORDS.iter().find(|(word, _)| *word == text).map_or(text, |(_, line)| *line);
        let mut fields: Vec<&str> = text.split_whitespace().collect();
        if fields.len() > FIELDS.len() {
            let seconds = fields.remove(0);
            seconds.split(',').try_for_each(|part| parse_numbers(part, SECONDS).map(drop))?;
        }
        let fields: [&str; 5] = fields.try_into().ok()?;
        let mut bits = [0; 5];
        for ((bits, text), field) in bits.iter_mut().zip(fields).zip(FIELDS) {
            for part in text.split(',') {
                *bits |= match part {
                    "L" | "l" if field == FIELDS[2] => LAST_DAY,
                    part => parse_numbers(part, field)?,
                };
            }
        }
        // Day seven is day zero.
        bits[4] |= bits[4] >> 7;
        Some(Self {
            bits,
            is_unrestricted: [fields[2].starts_with('*'), fields[4].starts_with('*')],
        })
    }

    fn has_number(&self, field: usize, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.bits[field] >> number & 1 == 1)
    }

    fn has_day(&self, date: Date) -> bool {
        let is_last = self.bits[2] & LAST_DAY != 0 && date.day() == date.days_in_month();
        let is_in_month = is_last || self.has_number(2, date.day());
        let is_in_week = self.has_number(4, date.weekday().to_sunday_zero_offset());
        let is_day = match self.is_unrestricted {
            [false, false] => is_in_month || is_in_week,
            _ => is_in_month && is_in_week,
        };
        is_day && self.has_number(3, date.month())
    }

    /// The first time after `after`, read as UTC. `None` if no day matches.
    pub(crate) fn next_time(&self, after: Timestamp) -> Option<Timestamp> {
        let now = after.to_zoned(TimeZone::UTC).datetime();
        let minutes = (0..24_i8).flat_map(|hour| (0..60_i8).map(move |minute| (hour, minute)));
        let times = minutes
            .filter(|(hour, minute)| self.has_number(1, *hour) && self.has_number(0, *minute));
        for days in 0..MAX_DAYS {
            let date = now.date().checked_add(Span::new().days(days)).ok()?;
            if !self.has_day(date) {
                continue;
            }
            let mut candidates = times.clone().map(|(hour, minute)| date.at(hour, minute, 0, 0));
            if let Some(time) = candidates.find(|time: &DateTime| *time > now) {
                return time.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp());
            }
        }
        None
    }
}

/// The numbers in a part of a field: `*`, one, or a range, with or without a step.
fn parse_numbers(list_item: &str, field: CronField) -> Option<u64> {
    let (min, max, _) = field;
    let (range, step) = match list_item.split_once('/') {
        Some((range, step)) => (range, step.parse().ok().filter(|step| *step > 0)?),
        None => (list_item, 1),
    };
    let (from, to) = match range.split_once('-') {
        _ if range == "*" => (min, max),
        Some((from, to)) => (parse_number(from, field)?, parse_number(to, field)?),
        None if list_item.contains('/') => (parse_number(range, field)?, max),
        None => (parse_number(range, field)?, parse_number(range, field)?),
    };
    (from <= to).then(|| (from..=to).step_by(step).fold(0, |bits, number| bits | 1 << number))
}

/// A number in a field, as digits or by its name.
fn parse_number(text: &str, (min, max, names): CronField) -> Option<u32> {
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
    fn five_fields_are_read() {
        for (text, good) in [
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
            assert_eq!(Cron::parse(text).is_some(), good, "{text}");
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
            // A day of the month, or one of the week.
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
