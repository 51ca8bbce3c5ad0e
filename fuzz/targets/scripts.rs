//! libFuzzer on the property `scripts`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sidecert_props::scripts(bytes));
