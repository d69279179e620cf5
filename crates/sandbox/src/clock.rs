//! The sandbox's clock, which a test can replace, and the format of times in answers.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The source of time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that calls `source` each time.
    pub fn new(source: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    /// The machine's clock.
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Clock")
    }
}

/// A time in the service's format: UTC with milliseconds.
pub(crate) fn spell(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// The day of a time, in UTC.
pub(crate) fn day(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}
