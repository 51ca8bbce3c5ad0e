//! The public promises of `sidecert-reports`, on whole reports.

mod hostile;
mod json;
mod samples;
mod terminal;
