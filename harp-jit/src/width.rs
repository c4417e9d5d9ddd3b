//! Widths: among which lanes a value is the same.

use std::fmt;

/// Among which lanes a value is the same. Only lanes that execute its definition together count, or, across
/// warps, in the same iteration of every loop around it (Timofeev, "Scalarization across threads", 2016). The
/// order is from least to most: the width of a computation is the least of the widths that it depends on, as
/// far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Width {
    /// It differs, or may differ, from lane to lane: the value is divergent.
    Thread,
    /// The lanes of a warp.
    Warp,
    /// The lanes of a work-group, whose warps all run on one core.
    Group,
    /// The lanes of the whole grid.
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

/// How the width of an intrinsic's result is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The result has this width, whatever the operands are.
    Fixed(Width),
    /// All lanes that execute it together get the same result, computed from the operands of all of them: it
    /// is as wide as the narrowest operand, and at least a warp.
    Shared,
}
