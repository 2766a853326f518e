//! What the threads of a mix share. It is made once, before they start.

use crate::measure::OperationKind;
use crate::protocol::{Mix, MixOperation};
use crate::random::{KeyChooser, Shares, Sizes};

use super::records::Records;

/// A mix, ready to be performed.
#[derive(Debug)]
pub struct MixPlan {
    /// Operations, and where the latencies of each are filed.
    operations: Vec<(MixOperation, usize)>,
    shares: Shares,
    /// Share of the draws in which the key decides the operation.
    pub operation_by_key: f64,
    /// Operation types under which latencies are filed, by slot.
    pub kinds: Vec<OperationKind>,
    /// Chooses keys; `None` if no operation needs one.
    pub chooser: Option<KeyChooser>,
    /// How many entries a scan reads.
    pub scan_lengths: Sizes,
    /// The keys that exist.
    pub records: Records,
    /// Set if the value of an insert follows from its number, and not from who performs it: how
    /// many were done before the mix began.
    pub written: Option<u64>,
}

impl MixPlan {
    /// The plan of `mix`, which has been checked.
    pub fn new(mix: &Mix, written: Option<u64>) -> Self {
        let mut kinds: Vec<OperationKind> = Vec::new();
        let operations = mix.operations.keys().map(|operation| {
            let kind = kind(*operation);
            let slot = kinds.iter().position(|known| *known == kind);
            let slot = slot.unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            (*operation, slot)
        });
        let operations = operations.collect();
        let moving = mix.operations.contains_key(&MixOperation::DeleteOldest);
        let chooser = mix
            .chooses_keys()
            .then(|| KeyChooser::new(&mix.keys, mix.records, moving));
        let inserts = mix.operations.contains_key(&MixOperation::Insert);
        let watched = moving || chooser.as_ref().is_some_and(KeyChooser::sees_inserts);
        MixPlan {
            operations,
            shares: Shares::new(mix.operations.values().copied()),
            operation_by_key: mix.operation_by_key.unwrap_or(0.0),
            kinds,
            chooser,
            scan_lengths: match &mix.scan_lengths {
                Some(lengths) => Sizes::new(lengths),
                None => Sizes::always(1),
            },
            records: Records::new(mix, inserts && watched),
            written,
        }
    }

    /// The operation that is picked by 64 random bits, and its slot.
    #[inline]
    pub fn operation(&self, bits: u64) -> (MixOperation, usize) {
        self.operations[self.shares.pick(bits)]
    }
}

/// The type under which the latencies of an operation are filed. Both deletes have one type.
fn kind(operation: MixOperation) -> OperationKind {
    match operation {
        MixOperation::Get => OperationKind::Get,
        MixOperation::Put => OperationKind::Put,
        MixOperation::Insert => OperationKind::Insert,
        MixOperation::Update => OperationKind::Update,
        MixOperation::ReadModifyWrite => OperationKind::ReadModifyWrite,
        MixOperation::Scan => OperationKind::Scan,
        MixOperation::Delete | MixOperation::DeleteOldest => OperationKind::Delete,
        MixOperation::Merge => OperationKind::Merge,
    }
}
