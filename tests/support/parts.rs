//! A test in several parts, so that none takes long: a function that takes the number of its part, and
//! [`in_parts`] with its name.

/// The number of parts: as many tests as [`in_parts`] makes.
pub(crate) const PARTS: usize = 6;

/// The items of a part. All parts together have each item once.
pub(crate) fn items_of_part<T>(
    part: usize,
    items: impl IntoIterator<Item = T>,
) -> impl Iterator<Item = T> {
    items.into_iter().skip(part).step_by(PARTS)
}

/// A module of tests with the name of a function, which each of them calls with the number of its part.
macro_rules! in_parts {
    ($name:ident) => {
        in_parts!($name: part_1 0, part_2 1, part_3 2, part_4 3, part_5 4, part_6 5);
    };
    ($name:ident: $($test:ident $part:literal),*) => {
        mod $name {
            $(#[test]
            fn $test() {
                super::$name($part);
            })*
        }
    };
}
pub(crate) use in_parts;
