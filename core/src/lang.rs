//! The two languages in which the bridge speaks to models and people.

/// A language of model-visible, mail and page texts. Wire values never depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lang {
    /// Chinese, the language of the sibling bridges and the default.
    #[default]
    Zh,
    /// English, chosen by `AGENTMAIL_LANG=en`.
    En,
}

impl Lang {
    /// The language named by a value such as `en`, `en-GB` or `en_US.UTF-8`; anything else is
    /// Chinese.
    #[must_use]
    pub fn from_tag(tag: &str) -> Self {
        let primary = tag.trim().split(['-', '_', '.']).next().unwrap_or_default();
        if primary.eq_ignore_ascii_case("en") { Self::En } else { Self::Zh }
    }

    /// The BCP 47 tag.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Zh => "zh-CN",
            Self::En => "en",
        }
    }

    /// The text of this language out of a pair.
    #[must_use]
    pub const fn pick<'a>(self, zh: &'a str, en: &'a str) -> &'a str {
        match self {
            Self::Zh => zh,
            Self::En => en,
        }
    }
}
