// What docs/in-your-tests.md shows; there the command is one of the reader's.
fn main() -> std::process::ExitCode {
    sidecert::conformance::guest("reasonix-v2", crate::command())
        .manifest("reasonix-plugin.json")
        .exercise("all")
        .main()
}
