//! What docs/in-your-tests.md shows, but for the command and who may call it.

pub(crate) fn main() -> std::process::ExitCode {
    sidecert::conformance::guest("reasonix-v2", crate::command())
        .manifest("reasonix-plugin.json")
        .exercise("all")
        .main()
}
