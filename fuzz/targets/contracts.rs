//! libFuzzer on the property `contracts`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sidecert_props::contracts(bytes));
