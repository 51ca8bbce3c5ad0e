//! The members that hold what somebody wrote, and no name: a text in one of these is free text, however short. And
//! those that hold a name which a host makes up as it likes.

use crate::redact::Free;

/// All of them.
pub const FREE: Free = Free { texts: TEXTS, trees: TREES };

/// Members whose texts are free.
const TEXTS: &[&str] = &[
    "body",
    "content",
    "description",
    "detail",
    "displayName",
    "error",
    "guidance",
    "images",
    "label",
    "markdown",
    "message",
    "options",
    "paths",
    "prompt",
    "reason",
    "reasoning",
    "reasoning_content",
    "reasoning_signature",
    "result",
    "sessionPath",
    "signature",
    "summary",
    "text",
    "thought_signature",
    "title",
    "value",
    "workspaceRoot",
];

/// Members below which every text is free, at any depth: names in there are the user's.
const TREES: &[&str] = &["args", "arguments", "default", "parameters", "values"];

/// Members whose texts are names that a host makes up.
pub const MADE_UP: &[&str] = &["contentRef", "epoch", "sessionId", "sessionPath", "streamId"];
