//! What the rules say before anybody is asked (seed 000, mode table; wire rules `W-4`).
//!
//! A pure table over event, tool, mode, and whether mail drives the session. Whatever the table
//! does not name has no opinion: ZCode's own rules apply to it as if the hook did not exist.

use super::event::Kind;
use crate::mode::PermissionMode;

/// Tools that change files or run programs. The first four are the seed's; the others do the same
/// under another name in some versions of ZCode.
pub const GUARDED: [&str; 7] =
    ["Bash", "Write", "Edit", "ApplyPatch", "MultiEdit", "NotebookEdit", "mcp__node_repl__js"];

/// Prefixes of our own mail tools, as a plugin and as a plain MCP server of the name `agentmail`.
pub const OWN_PREFIXES: [&str; 2] = ["mcp__plugin_agentmail_agentmail__", "mcp__agentmail__"];

/// Our own tools that a rule may approve. `connect_to_server` chooses where the key is sent and
/// `upload_attachment` reads a file of the user, so these two are missing on purpose.
pub const OWN_BY_RULE: [&str; 9] = [
    "read_inbox",
    "read_mail",
    "read_thread",
    "send_mail",
    "forward_mail",
    "download_attachment",
    "suggest_address",
    "list_contacts",
    "session_participants",
];

/// What the table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// Say nothing.
    None,
    /// Approve: the session's mode does without questions.
    ApproveFull,
    /// Approve: a mail tool of ours in a mail-driven session.
    ApproveOwn,
    /// Refuse: the session may plan, not act. Nobody is asked.
    RefusePlan,
    /// Ask a human, unless a remembered approval covers the call.
    Ask,
}

/// The table. `driven` says whether mail drives the session, so that nobody sits in front of it.
#[must_use]
pub fn opinion(kind: Kind, tool: &str, mode: PermissionMode, driven: bool) -> Opinion {
    if kind == Kind::PreToolUse && !driven {
        // A person is there, and ZCode asks them itself whenever its own mode says so.
        return Opinion::None;
    }
    if GUARDED.contains(&tool) {
        return match mode {
            PermissionMode::Plan => Opinion::RefusePlan,
            PermissionMode::Workspace => Opinion::Ask,
            PermissionMode::Full => Opinion::ApproveFull,
        };
    }
    if driven && mode != PermissionMode::Plan && is_own_by_rule(tool) {
        return Opinion::ApproveOwn;
    }
    Opinion::None
}

fn is_own_by_rule(tool: &str) -> bool {
    OWN_PREFIXES
        .iter()
        .find_map(|prefix| tool.strip_prefix(prefix))
        .is_some_and(|name| OWN_BY_RULE.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{PermissionRequest, PreToolUse};
    use PermissionMode::{Full, Plan, Workspace};

    #[test]
    fn guarded_tools_follow_the_mode() {
        for tool in GUARDED {
            for driven in [false, true] {
                for (mode, expected) in [
                    (Plan, Opinion::RefusePlan),
                    (Workspace, Opinion::Ask),
                    (Full, Opinion::ApproveFull),
                ] {
                    assert_eq!(opinion(PermissionRequest, tool, mode, driven), expected, "{tool}");
                    let before = if driven { expected } else { Opinion::None };
                    assert_eq!(opinion(PreToolUse, tool, mode, driven), before, "{tool}");
                }
            }
        }
    }

    #[test]
    fn no_other_tool_is_ever_answered() {
        for tool in [
            "Read",
            "Glob",
            "WebFetch",
            "AskUserQuestion",
            "ExitPlanMode",
            "bash",
            "Bash ",
            "BashOutput",
            "mcp__github__create_issue",
            "mcp__agentmail_evil__read_inbox",
            "mcp__agentmail__",
            "xmcp__agentmail__read_inbox",
        ] {
            for kind in [PermissionRequest, PreToolUse] {
                for mode in [Plan, Workspace, Full] {
                    for driven in [false, true] {
                        assert_eq!(opinion(kind, tool, mode, driven), Opinion::None, "{tool}");
                    }
                }
            }
        }
    }

    #[test]
    fn own_tools_need_no_question_when_mail_drives() {
        for prefix in OWN_PREFIXES {
            for (name, by_rule) in [
                ("send_mail", true),
                ("read_inbox", true),
                ("connect_to_server", false),
                ("upload_attachment", false),
                ("send_mail2", false),
                ("SEND_MAIL", false),
            ] {
                let tool = alloc::format!("{prefix}{name}");
                for mode in [Workspace, Full] {
                    let expected = if by_rule { Opinion::ApproveOwn } else { Opinion::None };
                    assert_eq!(opinion(PermissionRequest, &tool, mode, true), expected, "{tool}");
                    assert_eq!(opinion(PreToolUse, &tool, mode, true), expected, "{tool}");
                    assert_eq!(opinion(PermissionRequest, &tool, mode, false), Opinion::None);
                }
                assert_eq!(opinion(PermissionRequest, &tool, Plan, true), Opinion::None);
            }
        }
    }
}
