//! libFuzzer on the property `chunking`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sidecert_props::chunking(bytes));
