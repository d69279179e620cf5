//! What a value may mean that its field does not take: other words, units, dates and characters.

use jiff::civil::Date;

use super::{
    Located,
    example::scalar,
    keys::homes,
    suggest::{MOST_NAMES, Mistake, strings},
};
use crate::{
    field::{Field, Secrecy},
    kinds::words,
    text::{alternatives, joined, nearest},
    yaml::{Data, write::scalar as quoted},
};

/// Units in which a field counts, and how many of them are in others, by how these begin.
const UNITS: [(&str, &[(&str, f64)]); 5] = [
    ("in seconds", &[("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0), ("w", 604_800.0)]),
    ("in minutes", &[("m", 1.0), ("h", 60.0), ("d", 1440.0)]),
    ("in hours", &[("h", 1.0), ("d", 24.0), ("w", 168.0)]),
    ("in megabytes", &[("m", 1.0), ("g", 1024.0)]),
    ("from 0 to 1", &[("%", 0.01)]),
];

impl Mistake<'_, '_> {
    /// Words for a value that its field does not take.
    pub(super) fn word_for_value(&self, name: &str) -> Option<String> {
        let (at, node) = (self.at, self.at.node);
        let text = node.text().unwrap_or_default();
        let option = |options: &[&'static str]| {
            words::option(&scalar(node)?, options.iter().copied()).map(str::to_owned)
        };
        match name {
            "none_word" => option(&["null"]),
            "boolean" => option(&["true", "false"]),
            "option" => {
                let option = words::options(text).find(|word| *word != "null" && at.takes(word));
                option.map(|option| quoted(option, false))
            }
            "digits" => {
                let word = || option(&["0", "1", "2", "3", "4", "5", "10"]);
                let first = || text.split(' ').next().filter(|_| text.contains(" of "));
                digits(text).or_else(word).or_else(|| digits(first()?))
            }
            "in_unit" => at.in_unit(node.text()?),
            "day" => day(&scalar(node).filter(|_| at.schema["format"] == "date")?),
            "home_of_text" => {
                let name = text.rsplit(['.', '/']).next()?;
                homes(name, at.root, true).into_iter().next()
            }
            "near" => {
                // A name that begins with a word is not that word, misspelt.
                let goes_on = |near: &str| {
                    text.strip_prefix(near).is_some_and(|rest| rest.starts_with(['/', '-']))
                };
                let near = at.option_among(self.options).filter(|near| !goes_on(near));
                near.map(str::to_owned)
            }
            "address" => at.guarded().map(str::to_owned),
            "many" => (self.options.len() > MOST_NAMES).then(|| alternatives(self.options)),
            "with_hash" => Some(format!("#{text}")).filter(|text| at.takes(text)),
            "unwanted" => {
                let is_open = Field::of(at.schema).secrecy() == Secrecy::Open;
                let is_shown = is_open && text.len() <= 255;
                unwanted(Some(text).filter(|_| is_shown)?, |text| at.takes(text))
            }
            _ => None,
        }
    }
}

impl Located<'_> {
    /// The mapping for which a word in its place stands, with the one `field` that the word is about.
    pub(super) fn as_field(&self, field: &str) -> Option<String> {
        let is_switch = self.schema["properties"][field]["type"] == "boolean";
        let value = if is_switch { "true".to_owned() } else { digits(&scalar(self.node)?)? };
        Some(format!("write `{{{field}: {value}}}`"))
    }

    /// The number for one that is written with other units, as in `1h 30m`, and the unit of the field.
    fn in_unit(&self, text: &str) -> Option<String> {
        let about = self.schema["description"].as_str()?;
        let is_in = |base: &str| about.contains(base.trim_start_matches("in "));
        let (base, units) = UNITS.iter().find(|(base, _)| is_in(base))?;
        let (mut rest, mut sum) = (text.trim(), 0.0);
        while !rest.is_empty() {
            let is_unit = |c: char| !c.is_ascii_digit() && c != '.';
            let (count, unit) = rest.split_at(rest.find(is_unit)?);
            let end = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
            let unit_name = unit[..end].trim().to_lowercase();
            let is_word = !unit_name.contains(' ') && !unit_name.starts_with("mo");
            let mut named = units.iter().filter(|(name, _)| is_word && unit_name.starts_with(name));
            sum += count.parse::<f64>().ok()? * named.next()?.1;
            rest = &unit[end..];
        }
        Some(format!("`{sum}`: it is {base}"))
    }

    /// The option of its schema that another word stands for, if it takes only some.
    pub(super) fn option(&self) -> Option<String> {
        let alternatives = self.schema["anyOf"].as_array().into_iter().flatten();
        let options = alternatives.chain([self.schema]).flat_map(|one| strings(&one["enum"]));
        let mut options: Vec<_> = options.collect();
        if self.schema["type"] == "boolean" {
            options = ["true", "false"].map(str::to_owned).to_vec();
        }
        let written = scalar(self.node)?;
        self.option_among(&options).filter(|_| !options.contains(&written)).map(str::to_owned)
    }

    /// The one of `options` that another word stands for.
    fn option_among<'o>(&self, options: &'o [String]) -> Option<&'o str> {
        let written = scalar(self.node)?;
        let all = || options.iter().map(String::as_str);
        let level = || all().find(|option| super::example::level(&written) == Some(option));
        let begins = || all().find(|option| written.split([':', ' ', '(']).next() == Some(option));
        let alias = level().or_else(|| words::option(&written, all())).or_else(begins);
        let is_text = matches!(self.node.data, Data::Text(_));
        alias.or_else(|| nearest(&written, all()).filter(|_| is_text))
    }
}

/// The characters of `text` that a field accepts nowhere, if `takes` accepts the text without them.
fn unwanted(text: &str, takes: impl Fn(&str) -> bool) -> Option<String> {
    let characters = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
    let mut unwanted: Vec<_> = characters.collect();
    unwanted.sort_unstable();
    unwanted.dedup();
    unwanted.retain(|c| !takes(c) && !takes(&format!("a{c}a")) && !takes(&format!("1{c}1")));
    let rest = unwanted.iter().fold(text.to_owned(), |rest, c| rest.replace(c, ""));
    // With more of them, something else is wrong.
    ((1..=3).contains(&unwanted.len()) && takes(&rest)).then_some(())?;
    let named = |c: &&str| if *c == " " { "blanks".to_owned() } else { alternatives(&[c]) };
    Some(joined(&unwanted.iter().map(named).collect::<Vec<_>>()))
}

/// A day that is written in another form, if it can be only one.
fn day(text: &str) -> Option<String> {
    let parts = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let (year, month, day) = match parts[..] {
        [year, month, day, ..] if year.len() == 4 => (year, month, day),
        [all] if all.len() == 8 => (&all[..4], &all[4..6], &all[6..]),
        [day, month, year] if year.len() == 4 && text.contains('.') => (year, month, day),
        _ => return None,
    };
    let date = Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()?;
    Some(date.to_string())
}

/// The digits of a number that is written with something in between.
fn digits(text: &str) -> Option<String> {
    let digits = text.replace(['_', ',', '\'', ' '], "");
    digits.chars().all(|c| c.is_ascii_digit()).then_some(digits).filter(|digits| !digits.is_empty())
}
