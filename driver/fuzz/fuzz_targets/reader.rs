//! The reader that `LSMTUNE_READER` names, one of `lsmtune_driver::fuzz::TARGETS`.
#![no_main]

use std::sync::LazyLock;

static NAME: LazyLock<String> =
    LazyLock::new(|| std::env::var("LSMTUNE_READER").expect("LSMTUNE_READER names a reader"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lsmtune_driver::fuzz::run(&NAME, bytes));
