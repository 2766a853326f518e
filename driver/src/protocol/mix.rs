//! Mixes: operations that are drawn at random.

use serde::{Deserialize, Serialize};

use super::distributions::{KeyDistribution, SizeDistribution};
use super::is_default;

/// What each thread draws for every operation: its type, its key, its size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Weights by operation.
    #[cfg_attr(test, schemars(schema_with = "weights"))]
    pub operations: std::collections::BTreeMap<MixOperation, f64>,
    /// How keys are chosen among those that exist.
    pub keys: KeyDistribution,
    /// Number of the first key that exists when the phase begins; 0 where absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub first: u64,
    /// How many keys exist when the phase begins.
    pub records: u64,
    /// Number of the first key that is inserted; `first + records` where absent.
    pub insert_from: Option<u64>,
    /// How many entries a scan reads; must be given where there are scans.
    pub scan_lengths: Option<SizeDistribution>,
    /// Bytes of a value; `value_bytes` of the workload where absent.
    pub value_sizes: Option<SizeDistribution>,
    /// Share of the draws in which the key decides the operation, always the same one for the same
    /// key. In the other draws, operation and key are independent. Not allowed if keys are inserted
    /// or the oldest are deleted. 0 where absent.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub operation_by_key: Option<f64>,
}

impl Mix {
    /// Whether the database is changed.
    pub fn writes(&self) -> bool {
        self.operations
            .keys()
            .any(|operation| !matches!(operation, MixOperation::Get | MixOperation::Scan))
    }

    /// Whether any operation chooses among the existing keys.
    pub fn chooses_keys(&self) -> bool {
        let none = [MixOperation::Insert, MixOperation::DeleteOldest];
        self.operations.keys().any(|each| !none.contains(each))
    }
}

/// One operation of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MixOperation {
    /// Look a key up.
    Get,
    /// Write a key without looking.
    Put,
    /// Write the next new key.
    Insert,
    /// Look a row up and write it again; if it is missing, write nothing.
    Update,
    /// Look a row up, then update it.
    ReadModifyWrite,
    /// Open a cursor, seek, read entries.
    Scan,
    /// Delete a key.
    Delete,
    /// Delete the oldest key that no `delete_oldest` has deleted yet.
    DeleteOldest,
    /// Hand a key a merge operand: a whole new value. RocksDB, with `merge_operator=put`.
    Merge,
}

#[cfg(test)]
fn weights(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let operation = generator.subschema_for::<MixOperation>();
    schemars::json_schema!({
        "type": "object",
        "minProperties": 1,
        "propertyNames": operation,
        "additionalProperties": {"type": "number", "exclusiveMinimum": 0},
    })
}
