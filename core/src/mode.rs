//! Permission modes of a mail session (`W-4`, seed 000).

/// How much an agent may do without asking. It belongs to the mail session and reaches the hook as
/// `AGENTMAIL_PERMISSION_MODE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PermissionMode {
    /// Guarded tools are refused without asking anybody.
    Plan,
    /// Guarded tools are asked by mail. The default, and the reading of every unknown value.
    #[default]
    Workspace,
    /// Guarded tools are approved without asking.
    Full,
}

impl PermissionMode {
    /// Reads a mode; surrounding white space is dropped and anything unknown is
    /// [`PermissionMode::Workspace`], never `Full`.
    #[must_use]
    pub fn from_wire(text: &str) -> Self {
        Self::parse(text).unwrap_or_default()
    }

    /// Reads a mode exactly, for places where an unknown value is an error.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "plan" => Some(Self::Plan),
            "workspace" => Some(Self::Workspace),
            "full" => Some(Self::Full),
            _ => None,
        }
    }

    /// The mode's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Workspace => "workspace",
            Self::Full => "full",
        }
    }
}

/// What a platform can do about a mode (`B-2.6`): force it, or only warn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// The platform really stops a forbidden call.
    Native,
    /// The platform can only be asked nicely. The default, and the reading of unknown values.
    #[default]
    Advisory,
}

impl Enforcement {
    /// Reads an enforcement; unknown values promise nothing and are [`Enforcement::Advisory`].
    #[must_use]
    pub fn from_wire(text: &str) -> Self {
        if text.trim() == "native" { Self::Native } else { Self::Advisory }
    }

    /// The enforcement's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Advisory => "advisory",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_modes_are_workspace_never_full() {
        for text in ["", "FULL", "full!", "Full", "plan workspace", "yolo", "ｆｕｌｌ"] {
            assert_eq!(PermissionMode::from_wire(text), PermissionMode::Workspace, "{text:?}");
        }
        assert_eq!(PermissionMode::from_wire(" full\n"), PermissionMode::Full);
        assert_eq!(PermissionMode::from_wire("plan"), PermissionMode::Plan);
    }
}
