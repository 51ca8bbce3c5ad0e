//! Every bound of this crate, and why it is what it is. No wait and no buffer is without one.

use std::time::Duration;

/// How much is read from a link at once, in bytes: what a pipe holds by default, so that one read takes in all that
/// was there at a given moment.
pub const READ_BYTES: usize = 64 * 1024;

/// How much may be queued for all links, in bytes, before a machine is asked for no more than it must say.
pub const WRITE_QUEUE_BYTES: usize = 256 * 1024;

/// How many writes one input may still bring out of a machine while [`WRITE_QUEUE_BYTES`] are queued. Not zero: a peer
/// that reads nothing must not keep what stands behind a write, such as a kill, from being heard.
pub const WRITES_OVER_QUEUE: usize = 16;

/// How many survivors of a guest are named; the rest is counted.
pub const LEFT_NAMED_MAX: usize = 64;

/// The longest line between a launcher and the harness, in bytes.
pub const CONTROL_LINE_BYTES_MAX: usize = 256;

/// From starting a launcher until it says what became of the guest. Loading a program over a slow network file system
/// is the slow case.
pub const SPAWN_WITHIN: Duration = Duration::from_secs(10);

/// From the exit of a guest until what it started counts as left behind: a child that ends because its parent did
/// needs a moment to notice.
pub const SETTLE_WITHIN: Duration = Duration::from_millis(100);

/// From killing a tree until the launcher gives up on what the kernel does not end.
pub const KILL_WITHIN: Duration = Duration::from_secs(2);

/// From telling a launcher to kill until the harness does it by itself. Longer than [`KILL_WITHIN`].
pub const LAUNCHER_WITHIN: Duration = Duration::from_secs(3);

/// From the exit of a guest until it is told although a process that is not ours to kill still holds its standard
/// output or error. Longer than [`SETTLE_WITHIN`].
pub const EXITED_GRACE: Duration = Duration::from_millis(500);

/// From a machine's exit until what it wrote is given up, when nobody reads it.
pub const FLUSH_WITHIN: Duration = Duration::from_secs(5);

/// How often a launcher looks for orphans that ended while the guest runs. Nobody waits for that.
pub const REAP_EVERY: Duration = Duration::from_secs(1);

/// From the last thing that happened in a process until another one may be started beside it.
pub const IDLE_AFTER: Duration = Duration::from_millis(500);

/// How many processes that say nothing may run beside those that do, unless the user says how many run at once.
pub const IDLE_MOST: usize = 4;

/// How often a pipe is looked at that must empty but could not be shrunk, because more than a page was unread in it:
/// nothing wakes the writer of a pipe that is not full.
pub const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// From looking at what was overheard until it is looked at again: what is recorded in one go disturbs nobody.
pub const LISTEN_EVERY: Duration = Duration::from_millis(20);

/// From the end of a guest that is listened to until its recording is given up: a disk that is stuck holds nobody up.
pub const RECORDED_WITHIN: Duration = Duration::from_secs(1);

/// How often a full disk is tried again.
pub const RETRY_EVERY: Duration = Duration::from_secs(1);

/// From starting a probe until it is connected, or gives up.
pub const CONNECT_WITHIN: Duration = Duration::from_millis(900);

/// From connecting until a probe has said who it is, or is sent away.
pub const HELLO_WITHIN: Duration = Duration::from_secs(2);

const _: () = assert!(LAUNCHER_WITHIN.as_millis() > KILL_WITHIN.as_millis());
const _: () = assert!(EXITED_GRACE.as_millis() > SETTLE_WITHIN.as_millis());

/// All waits by name, for reports.
pub const WAITS: &[(&str, Duration)] = &[
    ("spawn", SPAWN_WITHIN),
    ("settle", SETTLE_WITHIN),
    ("kill", KILL_WITHIN),
    ("launcher", LAUNCHER_WITHIN),
    ("exited-grace", EXITED_GRACE),
    ("flush", FLUSH_WITHIN),
    ("reap", REAP_EVERY),
    ("idle", IDLE_AFTER),
    ("look-again", LOOK_AGAIN),
    ("listen", LISTEN_EVERY),
    ("recorded", RECORDED_WITHIN),
    ("retry", RETRY_EVERY),
    ("connect", CONNECT_WITHIN),
    ("hello", HELLO_WITHIN),
];

/// The longest frame between a probe and the harness, in bytes.
pub const PROBE_FRAME_BYTES_MAX: usize = 1 << 20;

/// How much a probe reads ahead of the machine, and how much it holds that is to be written, in bytes: as much as a
/// pipe does by default, so that the other end feels one that does not read as it would without a probe.
pub const PROBE_WINDOW_BYTES: usize = 64 * 1024;

/// How many connections may wait to say who they are; those beyond wait to be taken.
pub const PENDING_MOST: usize = 16;

/// How many probes one drive takes; those beyond are sent away.
pub const PROBES_MOST: usize = 1024;

/// After how much a machine that goes on writing is written for already, in bytes.
pub const WRITE_EARLY_BYTES: usize = 8 << 10;

/// How much of a transcript is gathered before it is written, in bytes.
pub const RECORD_BYTES: usize = 64 << 10;

/// How much of what was overheard waits to be recorded, in bytes. What comes beyond that is relayed and not recorded.
pub const OVERHEARD_BYTES_MAX: usize = 4 << 20;

/// From how much on it is recorded at once, in bytes.
pub const OVERHEARD_BYTES_SOON: usize = 256 << 10;

/// What each thing that was overheard counts for in that, beside its bytes.
pub const OVERHEARD_EACH_BYTES: usize = 64;
