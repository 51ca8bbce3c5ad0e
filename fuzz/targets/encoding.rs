//! libFuzzer on the property `encoding`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sidecert_props::encoding(bytes));
