//! libFuzzer on the property `flaws`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sidecert_props::flaws(bytes));
