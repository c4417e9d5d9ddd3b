//! How far a value is the same.

use std::fmt;

/// Among whose lanes a value is the same, of those that execute its definition together, or, of different
/// warps, in the same round of every loop around it (Timofeev, "Scalarization across threads", 2016). From
/// least to most: what is the same for all that is known of a computation is as wide as the narrowest thing
/// that it depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Width {
    /// It differs, or may differ, from lane to lane: it is divergent.
    Thread,
    /// The lanes of a warp.
    Warp,
    /// Those of a work-group, whose warps all run on one core.
    Group,
    /// Those of the whole grid.
    #[default]
    Grid,
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Width::Thread => "divergent",
            Width::Warp => "uniform in warp",
            Width::Group => "uniform in group",
            Width::Grid => "uniform in grid",
        })
    }
}

/// How the width of an intrinsic's result comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// It is this one, whatever the operands are.
    Fixed(Width),
    /// All lanes that execute it together get the same, made of the operands of all of them: it is as wide
    /// as these are, a warp at least.
    Shared,
}
