//! The public promises of `sidecert-reports`, on whole reports.

mod hostile;
mod json;
mod junit;
mod markdown;
mod samples;
mod terminal;
