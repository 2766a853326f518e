//! The golden files of `protocol/`, which the tuner's tests read too: every message and request
//! there must be understood, say the same when written again, and satisfy the JSON Schemas.

use std::fs;
use std::path::{Path, PathBuf};

use lsmtune_driver::protocol::{Message, Request, PROTOCOL_VERSION};
use serde_json::Value;

fn protocol() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol")
}

fn golden(prefix: &str) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(protocol().join("golden"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no golden files {prefix}*");
    files
}

fn schema(name: &str) -> jsonschema::Validator {
    let text = fs::read_to_string(protocol().join(name)).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

#[test]
fn golden_requests_are_understood_and_say_the_same_again() {
    let schema = schema("request.schema.json");
    for (name, text) in golden("request-") {
        let value: Value = serde_json::from_str(&text).unwrap();
        let request: Request =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let again = serde_json::to_value(&request).unwrap();
        assert_eq!(
            serde_json::from_value::<Request>(again).unwrap(),
            request,
            "{name}"
        );
        assert!(
            schema.is_valid(&value),
            "{name} does not satisfy the schema"
        );
    }
}

#[test]
fn golden_messages_are_understood_and_say_the_same_again() {
    let schema = schema("message.schema.json");
    for (name, text) in golden("messages-") {
        for (number, line) in text.lines().enumerate() {
            let value: Value = serde_json::from_str(line).unwrap();
            let message: Message =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}:{}: {e}", number + 1));
            assert_eq!(
                serde_json::to_value(&message).unwrap(),
                value,
                "{name}:{}",
                number + 1
            );
            assert!(
                schema.is_valid(&value),
                "{name}:{} does not satisfy the schema",
                number + 1
            );
        }
    }
}

#[test]
fn every_conversation_states_this_version_first() {
    for (name, text) in golden("messages-") {
        let first: Message = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let Message::Hello {
            protocol_version, ..
        } = first
        else {
            panic!("{name} does not begin with hello");
        };
        assert_eq!(protocol_version, PROTOCOL_VERSION, "{name}");
    }
}

/// Whatever is cut off of a request, it is refused in words.
#[test]
fn truncated_requests_are_refused() {
    for (name, text) in golden("request-") {
        let text = text.trim_end().as_bytes();
        for length in 0..text.len() {
            let refused = Request::parse(&text[..length]);
            let error = refused.expect_err(&name);
            assert!(error.message.starts_with("request: "), "{name} {length}");
        }
        assert!(Request::parse(text).is_ok(), "{name}");
    }
}

#[test]
fn another_version_is_told_before_its_fields() {
    let newer = br#"{"protocol_version": 99, "command": "fly", "wings": 2}"#;
    let error = Request::parse(newer).unwrap_err();
    assert_eq!(error.message, "protocol_version: found 99; allowed: 4");
    assert_eq!(error.field.as_deref(), Some("protocol_version"));
    let words = br#"{"protocol_version": "two", "command": "run"}"#;
    let error = Request::parse(words).unwrap_err();
    assert_eq!(error.message, "protocol_version: found \"two\"; allowed: 4");
    let silent = Request::parse(br#"{"command": "run"}"#).unwrap_err();
    assert!(silent.message.contains("protocol_version"), "{silent:?}");
}

#[test]
fn unknown_fields_are_refused() {
    for (name, text) in golden("request-") {
        let text = text.replacen(
            "\"protocol_version\"",
            "\"colour\": 1, \"protocol_version\"",
            1,
        );
        let refused = serde_json::from_str::<Request>(&text);
        assert!(
            refused.unwrap_err().to_string().contains("colour"),
            "{name}"
        );
    }
}
