//! A test in several parts, so that none takes long: a function that takes the number of its part, and
//! [`in_parts`] with its name.

/// The number of parts: as many tests as [`in_parts`] makes.
pub(crate) const PARTS: usize = 6;

/// The items of a part. All parts together have each item once.
pub(crate) fn of_part<T>(
    part: usize,
    items: impl IntoIterator<Item = T>,
) -> impl Iterator<Item = T> {
    items.into_iter().skip(part).step_by(PARTS)
}

/// A module of tests with the name of a function, which each of them calls with the number of its part.
macro_rules! in_parts {
    ($name:ident) => {
        mod $name {
            #[test]
            fn part_1() {
                super::$name(0);
            }

            #[test]
            fn part_2() {
                super::$name(1);
            }

            #[test]
            fn part_3() {
                super::$name(2);
            }

            #[test]
            fn part_4() {
                super::$name(3);
            }

            #[test]
            fn part_5() {
                super::$name(4);
            }

            #[test]
            fn part_6() {
                super::$name(5);
            }
        }
    };
}
pub(crate) use in_parts;
