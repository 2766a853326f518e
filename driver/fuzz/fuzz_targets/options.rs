#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lsmtune_driver::fuzz::run("options", bytes));
