//! Any bytes at all as a trace: the reader must neither panic nor allocate beyond its bounds, and
//! what it read must lie within the file, in order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lsmtune_driver::trace::{Record, TraceError, TraceReader};

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
});

fn read(bytes: &[u8]) {
    let Ok(mut reader) = TraceReader::new(bytes) else {
        return;
    };
    let mut end = reader.offset_bytes();
    loop {
        match reader.next_entry() {
            Ok(Some(entry)) => {
                assert_eq!(entry.offset_bytes, end);
                let operations = match entry.record {
                    Record::Write(batch) => {
                        assert_eq!(batch.items().count(), batch.len());
                        batch.len()
                    }
                    Record::MultiGet(gets) => {
                        assert_eq!(gets.gets().count(), gets.len());
                        gets.len()
                    }
                    Record::Get { .. } | Record::Seek(_) => 1,
                };
                assert!(operations <= bytes.len());
                end = reader.offset_bytes();
            }
            Ok(None) => break,
            Err(TraceError::Damaged(damage)) => {
                assert!(damage.offset_bytes <= bytes.len() as u64);
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(reader.offset_bytes() <= bytes.len() as u64);
}
