//! The JSON Schemas of `protocol/` follow from the types of this room.
//!
//! `LSMTUNE_WRITE_SCHEMA=1 cargo test schema` writes them.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{json, Value};

use super::{Control, Message, Request};

#[test]
fn the_schema_of_requests_is_that_of_the_types() {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let mut schema = schema_of::<Request>(settings.clone(), "command");
    let mut control = schema_of::<Control>(settings, "command");
    schema["$defs"]["cancel"] = control["$defs"]["cancel"].take();
    assert_written(&schema, "request.schema.json");
}

#[test]
fn the_schema_of_messages_is_that_of_the_types() {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(nothing_negative));
    let schema = schema_of::<Message>(settings, "type");
    assert_written(&schema, "message.schema.json");
}

/// The schema of an enum. Each variant is a definition that is named by its tag.
fn schema_of<Type: JsonSchema>(settings: SchemaSettings, tag: &str) -> Value {
    let settings = settings.with_transform(RecursiveTransform(plain));
    let generator = settings.into_generator();
    let mut schema = generator.into_root_schema_for::<Type>().to_value();
    let mut variants = schema["oneOf"].take();
    for variant in variants.as_array_mut().unwrap() {
        let name = variant["properties"][tag]["const"]
            .as_str()
            .unwrap()
            .to_owned();
        let reference = json!({"$ref": format!("#/$defs/{name}")});
        schema["$defs"][name] = std::mem::replace(variant, reference);
    }
    schema["oneOf"] = variants;
    schema
}

/// Rules for both directions: an optional field is never null, unless null is its default. Pairs
/// and triples hold no negative number. What only Rust reads is left out.
fn plain(schema: &mut Schema) {
    schema.remove("format");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ").replace("`None`", "null");
    }
    if let Some(Value::Array(items)) = schema.get_mut("prefixItems") {
        let items = items.iter_mut().flat_map(<&mut Schema>::try_from);
        items.for_each(nothing_negative);
    }
    let required = schema.get("required").cloned().unwrap_or_default();
    let required = required.as_array().cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            if !required.contains(&json!(name)) && property.get("default") != Some(&Value::Null) {
                never_null(property);
            }
        }
    }
}

/// The schema of an `Option<T>` becomes that of `T`.
fn never_null(schema: &mut Value) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        schema["type"] = types[0].take();
    }
    if let Some(Value::Array(any)) = schema.get_mut("anyOf") {
        let reference = any[0]["$ref"].take();
        schema.as_object_mut().unwrap().remove("anyOf");
        schema["$ref"] = reference;
    }
}

fn nothing_negative(schema: &mut Schema) {
    let is_number = match schema.get("type") {
        Some(Value::Array(types)) => types.contains(&json!("number")),
        kind => kind == Some(&json!("number")),
    };
    if is_number && !schema.as_object().unwrap().contains_key("minimum") {
        schema.insert("minimum".to_owned(), json!(0));
    }
}

/// Checks that the committed file holds `schema`; writes it first if the environment asks for that.
fn assert_written(schema: &Value, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../protocol")
        .join(name);
    let text = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os("LSMTUNE_WRITE_SCHEMA").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap() == text,
        "protocol/{name} is not what the types say: run `LSMTUNE_WRITE_SCHEMA=1 cargo test schema`"
    );
}
