//! Every bound of the shims, and why it is what it is. No wait and no buffer is without one.

use std::time::Duration;

/// From asking for a session until it is there. Plugins start in waves of four, and each has 30 s for its handshake.
pub(crate) const START_WITHIN: Duration = Duration::from_secs(100);
/// From asking for the end of a session until it is killed: a plugin has 6 s, and there may be several.
pub(crate) const STOP_WITHIN: Duration = Duration::from_secs(30);
/// From a signal to the program until it is gone: its plugins may take 6 s each, and end side by side.
pub(crate) const SIGNALLED_WITHIN: Duration = Duration::from_secs(8);
/// A turn. The host itself gives a stream that says nothing up after 300 s.
pub(crate) const TURN_WITHIN: Duration = Duration::from_mins(10);
/// Anything else that a session is asked for, a reload for example, which may take what a start does.
pub(crate) const ASK_WITHIN: Duration = Duration::from_secs(100);
/// One run of the program that tells or does something without a session.
pub(crate) const RUN_WITHIN: Duration = Duration::from_secs(20);
/// From what a host says is done until it is told: what it tells plugins besides, observations for example, is written
/// some milliseconds later. It costs every ask as much.
pub(crate) const REST: Duration = Duration::from_millis(30);
/// What needs such a run, from asking to its outcome: longer than [`RUN_WITHIN`].
pub(crate) const BESIDE_WITHIN: Duration = Duration::from_secs(25);
/// From killing a session that did not end until it is no longer waited for.
pub(crate) const KILLED_WITHIN: Duration = Duration::from_secs(3);
/// From connecting to a program on the same machine until it answers.
pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How often a file is looked at that a program will write.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// From the exit of a program until its output is given up that somebody else holds open.
pub(crate) const DRAIN_WITHIN: Duration = Duration::from_secs(1);
/// From the end of our input, or a signal, until we end by force: longer than [`STOP_WITHIN`].
pub(crate) const END_WITHIN: Duration = Duration::from_secs(35);

const _: () = assert!(BESIDE_WITHIN.as_secs() > RUN_WITHIN.as_secs());
const _: () = assert!(END_WITHIN.as_secs() > STOP_WITHIN.as_secs());

/// The longest line that is read of sidecert or of a program, in bytes: a frame of 8 MiB with all of it escaped.
pub(crate) const LINE_BYTES_MAX: u64 = 64 << 20;
/// The longest line of a program's standard error that is told, in bytes.
pub(crate) const LOG_LINE_BYTES_MAX: usize = 16 << 10;
/// How much of the standard error of one session is told, in bytes.
pub(crate) const LOG_BYTES_MAX: usize = 256 << 10;
/// How much of what a program printed is kept to tell why it failed, in bytes.
pub(crate) const LAST_BYTES_MAX: usize = 32 << 10;
/// The longest answer over HTTP that is read, in bytes.
pub(crate) const REPLY_BYTES_MAX: u64 = 1 << 20;
/// The longest answer of a model that an outcome repeats, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;
/// How many things that were heard may wait to be looked at.
pub(crate) const HEARD_MAX: usize = 1024;
/// How much of a stored conversation is looked at, in bytes.
pub(crate) const STORED_BYTES_MAX: u64 = 16 << 20;
/// How deep below a home a conversation may lie, in folders.
pub(crate) const FOLDERS_DEEP_MAX: usize = 8;
/// How much of stored conversations is told, in bytes.
pub(crate) const STORED_TOLD_BYTES_MAX: usize = 4 << 20;
