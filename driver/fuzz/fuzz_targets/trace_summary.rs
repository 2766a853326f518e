//! Any bytes at all as a trace: the summary must neither panic nor contradict itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lsmtune_driver::protocol::{InspectRequest, PROTOCOL_VERSION};
use lsmtune_driver::trace::inspect::inspect;

fuzz_target!(|bytes: &[u8]| {
    let request = InspectRequest {
        protocol_version: PROTOCOL_VERSION,
        path: "fuzzed".into(),
        key_number: None,
        prefix_bytes: None,
        ranges: 16,
        seed: 0,
    };
    if let Ok(summary) = inspect(bytes, bytes.len() as u64, &request, &mut |_| true) {
        assert!(summary.bytes <= bytes.len() as u64);
        assert_eq!(
            summary.operations,
            summary.operation_counts.values().sum::<u64>()
        );
    }
});
