//! libFuzzer on the property `json`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sidecert_props::json(bytes));
