//! Why a value or a branch is divergent.

use std::fmt;

use cranelift_codegen::ir::{Inst, Value};

use crate::intrinsic::Intrinsic;

/// Why a value differs, or may differ, between lanes that execute together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It is something like the lane's number.
    Intrinsic(Intrinsic),
    /// It is an argument of a function, and nothing is known about the caller's.
    Argument,
    /// It was read from memory that somebody may write during the launch, or lanes own.
    Memory,
    /// It comes from an operation that nothing is known about, such as a call.
    Operation,
    /// It is computed from, or chosen among, values of which this one is divergent.
    Operand(Value),
    /// It is chosen by the way that lanes took from this branch, a divergent one.
    Merge(Inst),
    /// It is computed from `value`, which each lane takes along from the iteration in which it left
    /// the loop around `value`; lanes leave it in different ones because of `branch`.
    Iteration { value: Value, branch: Inst },
    /// The function has a cycle with several entries, which is not analysed.
    Irreducible,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Intrinsic(intrinsic) => write!(f, "{intrinsic}"),
            Cause::Argument => f.write_str("argument"),
            Cause::Memory => f.write_str("memory"),
            Cause::Operation => f.write_str("unknown operation"),
            Cause::Operand(value) => write!(f, "{value}"),
            Cause::Merge(branch) => write!(f, "merge after {branch}"),
            Cause::Iteration { value, branch } => {
                write!(f, "{value} of the iteration left by {branch}")
            }
            Cause::Irreducible => f.write_str("irreducible control flow"),
        }
    }
}
