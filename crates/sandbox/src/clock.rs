//! The format of times in responses.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A time in the service's format: UTC with milliseconds.
pub(crate) fn format_time(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// The day of a time, in UTC.
pub(crate) fn utc_day(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}
