//! What makes a figure less than trustworthy, as a sign next to it.

/// A sign that stands at a figure in a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sign {
    /// It beats what physics allows.
    Beaten,
    /// Its repetitions gather around two values.
    Bimodal,
    /// Its repetitions move with time.
    Drifting,
    /// Its repetitions scatter widely.
    Noisy,
    /// Its interval reaches another class of change.
    Uncertain,
}

impl Sign {
    /// The sign.
    pub const fn glyph(self) -> &'static str {
        match self {
            Sign::Beaten | Sign::Uncertain => "?",
            Sign::Bimodal => "‡",
            Sign::Drifting => "↗",
            Sign::Noisy => "~",
        }
    }

    /// What it says, for the caption and for the words on touch.
    pub const fn meaning(self) -> &'static str {
        match self {
            Sign::Beaten => "beats what physics allows",
            Sign::Bimodal => {
                "bimodal: repetitions gather around two values, and the mean is neither"
            }
            Sign::Drifting => "drifting: the machine changed between repetitions",
            Sign::Noisy => "noisy: repetitions scatter widely",
            Sign::Uncertain => "uncertain: repetitions leave the class of the change open",
        }
    }
}
