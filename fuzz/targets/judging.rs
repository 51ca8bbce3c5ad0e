//! libFuzzer on the property `judging`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sidecert_props::judging(bytes));
