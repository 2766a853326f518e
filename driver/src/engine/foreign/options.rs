//! The options that a library lists, and which of their values it takes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::engine::nearest::nearest;
use crate::engine::{EngineError, Options, Result};

/// What the library says of one option.
#[derive(Debug)]
struct Known {
    kind: String,
    default: String,
    least: f64,
    most: f64,
    choices: Vec<String>,
}

/// All of them, by name.
#[derive(Debug)]
pub struct ListedOptions(BTreeMap<String, Known>);

impl ListedOptions {
    /// The options in the library's JSON; the error says what is wrong in it.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let all: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_str(text)
            .map_err(|error| format!("not an object of objects: {error}"))?;
        let word = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        all.into_iter()
            .map(|(name, fields)| {
                let kind = fields.get("type").map(word).unwrap_or_default();
                if !["int", "float", "bool", "enum"].contains(&kind.as_str()) {
                    return Err(format!("{name}.type: allowed: int, float, bool, enum"));
                }
                let Some(default) = fields.get("default").map(word) else {
                    return Err(format!("{name}.default: is missing"));
                };
                let bound = |field: &str, otherwise: f64| match fields.get(field) {
                    None => Ok(otherwise),
                    Some(value) => value
                        .as_f64()
                        .ok_or_else(|| format!("{name}.{field}: allowed: a number")),
                };
                let listed = fields.get("choices").and_then(Value::as_array);
                let known = Known {
                    kind,
                    default,
                    least: bound("least", f64::NEG_INFINITY)?,
                    most: bound("most", f64::INFINITY)?,
                    choices: listed.into_iter().flatten().map(word).collect(),
                };
                match known.refusal(&known.default) {
                    Some(allowed) => Err(format!("{name}.default: allowed: {allowed}")),
                    None => Ok((name, known)),
                }
            })
            .collect::<std::result::Result<_, _>>()
            .map(ListedOptions)
    }

    /// Refuses names that are not listed, and values that the library does not take.
    pub fn check(&self, options: &Options) -> Result<()> {
        for (name, value) in options {
            let Some(known) = self.0.get(name) else {
                return Err(EngineError::UnknownOption {
                    name: name.clone(),
                    nearest: nearest(name, self.0.keys().map(String::as_str)),
                });
            };
            if let Some(allowed) = known.refusal(value) {
                return Err(EngineError::bad_value(name, value, &allowed));
            }
        }
        Ok(())
    }

    /// Each with its default.
    pub fn defaults(&self) -> Vec<(String, String)> {
        let known = self.0.iter();
        known
            .map(|(name, option)| (name.clone(), option.default.clone()))
            .collect()
    }
}

impl Known {
    /// What is allowed, for a value that is not.
    fn refusal(&self, value: &str) -> Option<String> {
        let within = |number: f64| (self.least..=self.most).contains(&number);
        let whole = value.parse::<i128>().is_ok();
        let bounds = match (self.least.is_finite(), self.most.is_finite()) {
            (true, true) => format!(" from {} to {}", self.least, self.most),
            (true, false) => format!(" from {}", self.least),
            (false, true) => format!(" to {}", self.most),
            (false, false) => String::new(),
        };
        let (good, allowed) = match self.kind.as_str() {
            "int" => (
                whole && value.parse().is_ok_and(within),
                format!("a whole number{bounds}"),
            ),
            "float" => (
                value
                    .parse()
                    .is_ok_and(|number: f64| number.is_finite() && within(number)),
                format!("a number{bounds}"),
            ),
            "bool" => (matches!(value, "true" | "false"), "true, false".to_owned()),
            _ => (
                self.choices.iter().any(|choice| choice == value),
                self.choices.join(", "),
            ),
        };
        (!good).then_some(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_by_the_list_of_the_library() {
        let options = ListedOptions::parse(
            r#"{"i": {"type": "int", "default": 4, "least": 2, "most": 8},
                "u": {"type": "int", "default": 18446744073709551615},
                "f": {"type": "float", "default": 0.5, "least": 0},
                "b": {"type": "bool", "default": true},
                "e": {"type": "enum", "default": "x", "choices": ["x", 7]}}"#,
        )
        .unwrap();
        for (name, good, bad, allowed) in [
            (
                "i",
                "8",
                vec!["9", "1", "2.5", "x", ""],
                "a whole number from 2 to 8",
            ),
            ("u", "18446744073709551615", vec!["1.5"], "a whole number"),
            ("f", "1e3", vec!["-1", "inf", "NaN", "x"], "a number from 0"),
            ("b", "false", vec!["1", "True"], "true, false"),
            ("e", "7", vec!["y", ""], "x, 7"),
        ] {
            assert_eq!(options.0[name].refusal(good), None);
            for each in bad {
                assert_eq!(
                    options.0[name].refusal(each).as_deref(),
                    Some(allowed),
                    "{each}"
                );
            }
        }
    }

    #[test]
    fn a_bound_that_is_no_number_is_refused() {
        let text = r#"{"i": {"type": "int", "default": 4, "least": "2"}}"#;
        let refused = ListedOptions::parse(text).unwrap_err();
        assert_eq!(refused, "i.least: allowed: a number");
    }
}
