//! Operations of the machine that CLIF has no opcode for, as calls to functions with known names.
//!
//! A call stays in the mid-end's side-effect skeleton: it is neither merged, duplicated nor moved to
//! another block. The price is that two equal calls stay two, so the builder makes one call in the
//! entry block. In CLIF text an intrinsic is declared as `fn0 = %harp_lane_id() -> i32`.

use std::fmt;

use cranelift_codegen::ir::types::{I8, INVALID};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, Inst, InstructionData, Signature, Type,
};
use cranelift_codegen::isa::CallConv;

/// An operation of the machine, written as a call in CLIF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Intrinsic {
    /// The lane's number in its warp.
    LaneId,
    /// The warp's number in its core.
    WarpId,
    /// The core's number.
    CoreId,
    /// How many lanes a warp has.
    LaneCount,
    /// The work-item's position in the grid in one dimension.
    GlobalId(Dimension),
    /// The work-item's position in its work-group in one dimension.
    LocalId(Dimension),
    /// The work-item's number in its work-group.
    LocalIndex,
    /// The extent of its own work-group in one dimension.
    LocalSize(Dimension),
    /// The position of the work-group among those of the grid in one dimension.
    GroupId(Dimension),
    /// The address of the work-group's memory.
    GroupMemory,
    /// Its operand, of any type, which the user promises to be equal in all executing lanes.
    AssumeUniform,
    /// Whether the operand, a truth value, holds in any executing lane.
    Any,
    /// Whether it holds in all of them.
    All,
    /// In which of the executing lanes the operand, a truth value, holds: a bit for each of the lowest
    /// lanes, as many as fit a word.
    Ballot,
    /// The same for the lanes above.
    BallotHigh,
    /// The first operand, of any type, of the lane whose number is the second; the lane's own where that
    /// lane does not execute.
    Shuffle,
    /// Waits for the other warps of the work-group.
    Barrier,
    /// The operand of some executing lane, the same one for all of them: whose, is not said.
    OfSomeLane,
    /// A value that nobody looks at.
    Undef,
    /// The address where the function's frame ends: its stack pointer at the entry.
    FrameEnd,
    /// Where the function returns to.
    ReturnAddress,
}

/// A dimension of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dimension {
    X,
    Y,
    Z,
}

impl Dimension {
    /// The dimension with this number, 0 to 2.
    pub(crate) fn new(number: u8) -> Option<Dimension> {
        [Dimension::X, Dimension::Y, Dimension::Z].get(usize::from(number)).copied()
    }
}

/// How the result of an intrinsic varies over the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Variation {
    /// Differs from lane to lane.
    Divergent,
    /// Equal in all lanes of a warp.
    UniformInWarp,
    /// Equal in all lanes that execute it together.
    UniformInMask,
    /// There is no result.
    Nothing,
    /// Equal in all executing lanes whatever the operands are, at the user's word.
    AssumedUniform,
}

/// Every intrinsic with its name in CLIF and the variation of its result.
const TABLE: [(Intrinsic, &str, Variation); 29] = [
    (Intrinsic::LaneId, "harp_lane_id", Variation::Divergent),
    (Intrinsic::WarpId, "harp_warp_id", Variation::UniformInWarp),
    (Intrinsic::CoreId, "harp_core_id", Variation::UniformInWarp),
    (Intrinsic::LaneCount, "harp_lane_count", Variation::UniformInWarp),
    (Intrinsic::GlobalId(Dimension::X), "harp_global_id_x", Variation::Divergent),
    (Intrinsic::GlobalId(Dimension::Y), "harp_global_id_y", Variation::Divergent),
    (Intrinsic::GlobalId(Dimension::Z), "harp_global_id_z", Variation::Divergent),
    (Intrinsic::LocalId(Dimension::X), "harp_local_id_x", Variation::Divergent),
    (Intrinsic::LocalId(Dimension::Y), "harp_local_id_y", Variation::Divergent),
    (Intrinsic::LocalId(Dimension::Z), "harp_local_id_z", Variation::Divergent),
    (Intrinsic::LocalIndex, "harp_local_index", Variation::Divergent),
    (Intrinsic::LocalSize(Dimension::X), "harp_local_size_x", Variation::UniformInWarp),
    (Intrinsic::LocalSize(Dimension::Y), "harp_local_size_y", Variation::UniformInWarp),
    (Intrinsic::LocalSize(Dimension::Z), "harp_local_size_z", Variation::UniformInWarp),
    (Intrinsic::GroupId(Dimension::X), "harp_group_id_x", Variation::UniformInWarp),
    (Intrinsic::GroupId(Dimension::Y), "harp_group_id_y", Variation::UniformInWarp),
    (Intrinsic::GroupId(Dimension::Z), "harp_group_id_z", Variation::UniformInWarp),
    (Intrinsic::GroupMemory, "harp_group_memory", Variation::UniformInWarp),
    (Intrinsic::AssumeUniform, "harp_assume_uniform", Variation::AssumedUniform),
    (Intrinsic::Any, "harp_any", Variation::UniformInMask),
    (Intrinsic::All, "harp_all", Variation::UniformInMask),
    (Intrinsic::Ballot, "harp_ballot", Variation::UniformInMask),
    (Intrinsic::BallotHigh, "harp_ballot_high", Variation::UniformInMask),
    (Intrinsic::Shuffle, "harp_shuffle", Variation::Divergent),
    (Intrinsic::Barrier, "harp_barrier", Variation::Nothing),
    (Intrinsic::OfSomeLane, "harp_of_some_lane", Variation::UniformInMask),
    (Intrinsic::Undef, "harp_undef", Variation::UniformInWarp),
    (Intrinsic::FrameEnd, "harp_frame_end", Variation::Divergent),
    (Intrinsic::ReturnAddress, "harp_return_address", Variation::Divergent),
];

impl Intrinsic {
    /// The intrinsic with this name.
    pub(crate) fn from_name(name: &[u8]) -> Option<Intrinsic> {
        TABLE.iter().find(|row| row.1.as_bytes() == name).map(|row| row.0)
    }

    /// The name of the called function.
    pub(crate) fn name(self) -> &'static str {
        self.row().1
    }

    /// How the result varies over the lanes of a warp.
    pub(crate) fn variation(self) -> Variation {
        self.row().2
    }

    /// Whether more happens than that a result comes out.
    pub(crate) fn has_effect(self) -> bool {
        self == Intrinsic::Barrier
    }

    /// The signature for results of type `ty` on a machine with words of type `word`. Of ids and the like
    /// the type is the machine's word; votes are about truth values, of type `i8`, whatever `ty` is.
    fn signature(self, ty: Type, word: Type) -> Signature {
        let (params, result): (&[Type], _) = match self {
            Intrinsic::AssumeUniform | Intrinsic::OfSomeLane => (&[ty], Some(ty)),
            Intrinsic::Any | Intrinsic::All => (&[I8], Some(I8)),
            Intrinsic::Ballot | Intrinsic::BallotHigh => (&[I8], Some(ty)),
            Intrinsic::Shuffle => (&[ty, word], Some(ty)),
            Intrinsic::Barrier => (&[], None),
            _ => (&[], Some(ty)),
        };
        let mut signature = Signature::new(CallConv::Fast);
        signature.params.extend(params.iter().copied().map(AbiParam::new));
        signature.returns.extend(result.map(AbiParam::new));
        signature
    }

    /// Declares the intrinsic in `func` with results of type `ty`. A [`Shuffle`](Intrinsic::Shuffle) takes
    /// a lane's number of that type, too.
    pub(crate) fn declare(self, func: &mut Function, ty: Type) -> FuncRef {
        self.declare_with(func, ty, ty)
    }

    /// Declares the intrinsic in `func` with results of type `ty`, for a machine with words of type
    /// `word`.
    pub(crate) fn declare_with(self, func: &mut Function, ty: Type, word: Type) -> FuncRef {
        let signature = func.import_signature(self.signature(ty, word));
        func.import_function(ExtFuncData {
            name: ExternalName::testcase(self.name()),
            signature,
            colocated: true,
            patchable: false,
        })
    }

    /// The intrinsic that `inst` calls. None if `inst` is no call, calls something else, or calls
    /// the name with other parameters and results than [`signature`](Intrinsic::signature) gives for some
    /// integer as the word.
    pub(crate) fn of_call(func: &Function, inst: Inst) -> Option<Intrinsic> {
        let InstructionData::Call { func_ref, .. } = func.dfg.insts[inst] else { return None };
        let callee = &func.dfg.ext_funcs[func_ref];
        let ExternalName::TestCase(name) = &callee.name else { return None };
        let intrinsic = Intrinsic::from_name(name.raw())?;
        let given = &func.dfg.signatures[callee.signature];
        let ty = given.returns.first().map_or(INVALID, |result| result.value_type);
        let word = given.params.last().map_or(INVALID, |param| param.value_type);
        let wanted = intrinsic.signature(ty, word);
        let is_word = match intrinsic {
            Intrinsic::Shuffle => word.is_int(),
            Intrinsic::AssumeUniform | Intrinsic::OfSomeLane | Intrinsic::Undef => true,
            Intrinsic::Any | Intrinsic::All | Intrinsic::Barrier => true,
            // Ids, addresses, and bits for lanes.
            _ => ty.is_int(),
        };
        let agree = given.params == wanted.params && given.returns == wanted.returns;
        (agree && is_word).then_some(intrinsic)
    }

    /// The intrinsic whose name `inst` calls with parameters and results that it does not have.
    pub(crate) fn misused_by(func: &Function, inst: Inst) -> Option<Intrinsic> {
        let callee = match func.dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } => &func.dfg.ext_funcs[func_ref],
            _ => return None,
        };
        let ExternalName::TestCase(name) = &callee.name else { return None };
        Intrinsic::from_name(name.raw()).filter(|_| Intrinsic::of_call(func, inst).is_none())
    }

    /// Whether it concerns the lane that executes it alone, whichever others do.
    pub(crate) fn is_private(self) -> bool {
        match self {
            Intrinsic::LaneId
            | Intrinsic::WarpId
            | Intrinsic::CoreId
            | Intrinsic::LaneCount
            | Intrinsic::GlobalId(_)
            | Intrinsic::LocalId(_)
            | Intrinsic::LocalIndex
            | Intrinsic::LocalSize(_)
            | Intrinsic::GroupId(_)
            | Intrinsic::GroupMemory
            | Intrinsic::AssumeUniform
            | Intrinsic::Undef
            | Intrinsic::FrameEnd
            | Intrinsic::ReturnAddress => true,
            Intrinsic::Any
            | Intrinsic::All
            | Intrinsic::Ballot
            | Intrinsic::BallotHigh
            | Intrinsic::Shuffle
            | Intrinsic::Barrier
            | Intrinsic::OfSomeLane => false,
        }
    }

    fn row(self) -> &'static (Intrinsic, &'static str, Variation) {
        TABLE.iter().find(|row| row.0 == self).expect("every intrinsic has a row")
    }
}

impl fmt::Display for Intrinsic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::types::I32;

    #[test]
    fn names_lead_back_to_their_intrinsic() {
        for (intrinsic, name, _) in TABLE {
            assert_eq!(Intrinsic::from_name(name.as_bytes()), Some(intrinsic));
            assert_eq!(intrinsic.name(), name);
        }
        assert_eq!(Intrinsic::from_name(b"harp_lane"), None);
    }

    #[test]
    fn calls_are_recognized_by_name_and_signature() {
        let text = "function %f(i32) {
            fn0 = %harp_lane_id() -> i32
            fn1 = %harp_lane_id(i32) -> i32
            fn2 = %harp_assume_uniform(i8) -> i8
            fn3 = %printf() -> i32
            fn4 = %harp_shuffle(f32, i32) -> f32
            fn5 = %harp_shuffle(i32, f32) -> i32
            fn6 = %harp_barrier()
            fn7 = %harp_barrier() -> i32
        block0(v0: i32):
            v1 = call fn0()
            v2 = call fn1(v0)
            v3 = ireduce.i8 v0
            v4 = call fn2(v3)
            v5 = call fn3()
            v6 = f32const 0.0
            v7 = call fn4(v6, v0)
            v8 = call fn5(v0, v6)
            call fn6()
            v9 = call fn7()
            return
        }";
        let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        let block = func.layout.entry_block().unwrap();
        let found: Vec<_> =
            func.layout.block_insts(block).map(|inst| Intrinsic::of_call(&func, inst)).collect();
        let (lane, assume) = (Some(Intrinsic::LaneId), Some(Intrinsic::AssumeUniform));
        let (shuffle, barrier) = (Some(Intrinsic::Shuffle), Some(Intrinsic::Barrier));
        let lanes = [lane, None, None, assume, None];
        assert_eq!(found[..5], lanes);
        assert_eq!(found[5..], [None, shuffle, None, barrier, None, None]);
    }

    #[test]
    fn declarations_are_recognized() {
        let mut func = Function::new();
        for (intrinsic, name, _) in TABLE {
            let callee = intrinsic.declare(&mut func, I32);
            let data = &func.dfg.ext_funcs[callee];
            assert_eq!(data.name.display(None).to_string(), format!("%{name}"));
        }
    }
}
