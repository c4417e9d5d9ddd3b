//! Operations that CLIF has no opcode for, as calls of functions with known names.
//!
//! A call stays in the mid-end's side-effect skeleton: it is not merged, duplicated or moved to another
//! block. The price is that two equal calls stay two, so the builder makes one call in the entry block. In
//! CLIF text an intrinsic is declared as `fn0 = %harp_lane_id() -> i32`.

use std::fmt;

use cranelift_codegen::ir::types::{I8, INVALID};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, Inst, InstructionData, Opcode,
    Signature, Type,
};
use cranelift_codegen::isa::CallConv;
use harp_isa::abi::{GroupField, LaneField};
use smallvec::{SmallVec, smallvec};

use crate::width::{Rule, Width};

/// An operation of the machine, written as a call in CLIF. Its properties are in its row of the [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Intrinsic {
    /// A word of the lane control block: lane, warp and core numbers, positions in the grid and in the
    /// work-group.
    LaneWord(LaneField),
    /// A word of the group control block: the position and extents of the work-group, its memory.
    GroupWord(GroupField),
    /// The work-item's position in the grid in the first dimension.
    GlobalIdX,
    /// Returns its operand, of any type, which the user promises to be equal in all executing lanes.
    AssumeUniform,
    /// Whether the operand, a truth value, holds in any executing lane.
    Any,
    /// Whether it holds in all of them.
    All,
    /// The executing lanes in which the operand, a truth value, holds: a bit for each of the lowest lanes, as
    /// many as fit a word.
    Ballot,
    /// The same for the lanes above those.
    BallotHigh,
    /// The first operand, of any type, as it is in the lane whose number is the second operand; the lane's
    /// own where that lane does not execute the shuffle.
    Shuffle,
    /// Combines the operands of all executing lanes. Legalization expands it to votes and shuffles.
    Reduce(Reduction),
    /// Waits for the other warps of the work-group.
    Barrier(Orders),
    /// The operand of one executing lane, the same lane for all of them; which lane is unspecified.
    OfSomeLane,
    /// An undefined value.
    Undef,
    /// False, which no pass looks at: a branch on it is a way that nobody takes, and that belongs to the control flow all
    /// the same, until divergence is managed.
    Never,
    /// The address of the frame's end: the stack pointer at the function's entry.
    FrameEnd,
    /// The return address.
    ReturnAddress,
}

/// Of which memory a barrier orders the accesses before and after it. The machine orders all; only checked launches look at
/// what the program has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Orders {
    All,
    /// The memory of the work-group.
    Group,
    /// All but that.
    Other,
    Nothing,
}

/// How the values of lanes are combined: by the CLIF operation of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// The sum of integers, which wraps around.
    Iadd,
    /// The smallest signed integer.
    Smin,
    /// The smallest unsigned integer.
    Umin,
    /// The largest signed integer.
    Smax,
    /// The largest unsigned integer.
    Umax,
    /// The bits that are 1 in all integers.
    Band,
    /// The bits that are 1 in any integer.
    Bor,
    /// The bits that are 1 in an odd number of integers.
    Bxor,
    /// The sum of floats, in the order of the lanes' numbers.
    Fadd,
    /// The smallest float; a NaN if there is one.
    Fmin,
    /// The largest float; a NaN if there is one.
    Fmax,
}

impl Reduction {
    /// The CLIF operation.
    pub(crate) fn opcode(self) -> Opcode {
        match self {
            Reduction::Iadd => Opcode::Iadd,
            Reduction::Smin => Opcode::Smin,
            Reduction::Umin => Opcode::Umin,
            Reduction::Smax => Opcode::Smax,
            Reduction::Umax => Opcode::Umax,
            Reduction::Band => Opcode::Band,
            Reduction::Bor => Opcode::Bor,
            Reduction::Bxor => Opcode::Bxor,
            Reduction::Fadd => Opcode::Fadd,
            Reduction::Fmin => Opcode::Fmin,
            Reduction::Fmax => Opcode::Fmax,
        }
    }
}

/// The parameters and results of an intrinsic. `T` is a type that the call site chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `() -> T` with an integer: an id, a count, an address.
    Word,
    /// `() -> T`
    Value,
    /// `(T) -> T`
    Same,
    /// `(T) -> T` with an integer.
    Int,
    /// `(T) -> T` with a float.
    Float,
    /// `(i8) -> i8`
    Vote,
    /// `(i8) -> T` with an integer, a bit for each lane.
    Ballot,
    /// `(T, lane) -> T`, where the lane's number is any integer.
    Shuffle,
    /// `()`
    Nothing,
}

impl Shape {
    /// The types of the parameters and of the result, for results of type `ty` on a machine with words of type `word`.
    fn types(self, ty: Type, word: Type) -> (SmallVec<[Type; 2]>, Option<Type>) {
        match self {
            Shape::Word | Shape::Value => (smallvec![], Some(ty)),
            Shape::Same | Shape::Int | Shape::Float => (smallvec![ty], Some(ty)),
            Shape::Vote => (smallvec![I8], Some(I8)),
            Shape::Ballot => (smallvec![I8], Some(ty)),
            Shape::Shuffle => (smallvec![ty, word], Some(ty)),
            Shape::Nothing => (smallvec![], None),
        }
    }

    /// Whether there is one of type `ty`.
    fn is_of(self, ty: Type) -> bool {
        match self {
            Shape::Word | Shape::Ballot | Shape::Int => ty.is_int(),
            Shape::Float => ty.is_float(),
            Shape::Value | Shape::Same | Shape::Vote | Shape::Shuffle | Shape::Nothing => true,
        }
    }
}

/// The properties of an intrinsic.
#[derive(Clone, Copy, Debug)]
struct Row {
    intrinsic: Intrinsic,
    /// The called function's name in CLIF.
    name: &'static str,
    shape: Shape,
    /// How the result varies over the lanes.
    rule: Rule,
    /// Whether its result and effect for a lane do not depend on which other lanes execute it.
    private: bool,
    /// Whether it has a side effect.
    effect: bool,
    /// Whether the result is 0 or 1, or undefined.
    truth: bool,
}

impl Row {
    /// A row with the defaults: private to the lane, without a side effect, and without a truth value as its
    /// result.
    const fn new(intrinsic: Intrinsic, name: &'static str, shape: Shape, rule: Rule) -> Row {
        Row { intrinsic, name, shape, rule, private: true, effect: false, truth: false }
    }

    /// Marks what the lanes of a warp do together.
    const fn shared(self) -> Row {
        Row { private: false, ..self }
    }

    const fn effect(self) -> Row {
        Row { effect: true, ..self }
    }

    const fn truth(self) -> Row {
        Row { truth: true, ..self }
    }

    fn of_name(name: &[u8]) -> Option<&'static Row> {
        // Other functions are not compared with all rows.
        let rows = if name.starts_with(b"harp_") { &TABLE[..] } else { &[] };
        rows.iter().find(|row| row.name.as_bytes() == name)
    }

    const fn lane(field: LaneField, name: &'static str, width: Width) -> Row {
        Row::new(Intrinsic::LaneWord(field), name, Shape::Word, Rule::Fixed(width))
    }

    const fn barrier(orders: Orders, name: &'static str) -> Row {
        Row::new(Intrinsic::Barrier(orders), name, Shape::Nothing, OF_GRID).shared().effect()
    }

    const fn reduce(reduction: Reduction, name: &'static str, shape: Shape) -> Row {
        Row::new(Intrinsic::Reduce(reduction), name, shape, Rule::Shared).shared()
    }

    /// Groups at the grid's end are smaller, so extents are uniform within a group only.
    const fn group(field: GroupField, name: &'static str) -> Row {
        Row::new(Intrinsic::GroupWord(field), name, Shape::Word, Rule::Fixed(Width::Group))
    }
}

const DIVERGENT: Rule = Rule::Fixed(Width::Thread);
/// Ballots also depend on which lanes execute them, so they are uniform within a warp only.
const OF_WARP: Rule = Rule::Fixed(Width::Warp);
const OF_GRID: Rule = Rule::Fixed(Width::Grid);

/// All intrinsics, one row each.
static TABLE: [Row; 44] = [
    Row::lane(LaneField::Lane, "harp_lane_id", Width::Thread),
    Row::lane(LaneField::Warp, "harp_warp_id", Width::Warp),
    Row::lane(LaneField::Core, "harp_core_id", Width::Group),
    Row::lane(LaneField::Lanes, "harp_lane_count", Width::Grid),
    Row::new(Intrinsic::GlobalIdX, "harp_global_id_x", Shape::Word, DIVERGENT),
    Row::lane(LaneField::GlobalIdY, "harp_global_id_y", Width::Thread),
    Row::lane(LaneField::GlobalIdZ, "harp_global_id_z", Width::Thread),
    Row::lane(LaneField::LocalIdX, "harp_local_id_x", Width::Thread),
    Row::lane(LaneField::LocalIdY, "harp_local_id_y", Width::Thread),
    Row::lane(LaneField::LocalIdZ, "harp_local_id_z", Width::Thread),
    Row::lane(LaneField::LocalIndex, "harp_local_index", Width::Thread),
    Row::group(GroupField::SizeX, "harp_local_size_x"),
    Row::group(GroupField::SizeY, "harp_local_size_y"),
    Row::group(GroupField::SizeZ, "harp_local_size_z"),
    Row::group(GroupField::IdX, "harp_group_id_x"),
    Row::group(GroupField::IdY, "harp_group_id_y"),
    Row::group(GroupField::IdZ, "harp_group_id_z"),
    Row::group(GroupField::Memory, "harp_group_memory"),
    Row::new(Intrinsic::AssumeUniform, "harp_assume_uniform", Shape::Same, Rule::Shared),
    Row::new(Intrinsic::Any, "harp_any", Shape::Vote, Rule::Shared).shared().truth(),
    Row::new(Intrinsic::All, "harp_all", Shape::Vote, Rule::Shared).shared().truth(),
    Row::new(Intrinsic::Ballot, "harp_ballot", Shape::Ballot, OF_WARP).shared(),
    Row::new(Intrinsic::BallotHigh, "harp_ballot_high", Shape::Ballot, OF_WARP).shared(),
    Row::new(Intrinsic::Shuffle, "harp_shuffle", Shape::Shuffle, DIVERGENT).shared(),
    Row::barrier(Orders::All, "harp_barrier"),
    Row::barrier(Orders::Group, "harp_barrier_group"),
    Row::barrier(Orders::Other, "harp_barrier_other"),
    Row::barrier(Orders::Nothing, "harp_barrier_nothing"),
    Row::new(Intrinsic::OfSomeLane, "harp_of_some_lane", Shape::Same, Rule::Shared).shared(),
    Row::reduce(Reduction::Iadd, "harp_reduce_iadd", Shape::Int),
    Row::reduce(Reduction::Smin, "harp_reduce_smin", Shape::Int),
    Row::reduce(Reduction::Umin, "harp_reduce_umin", Shape::Int),
    Row::reduce(Reduction::Smax, "harp_reduce_smax", Shape::Int),
    Row::reduce(Reduction::Umax, "harp_reduce_umax", Shape::Int),
    Row::reduce(Reduction::Band, "harp_reduce_band", Shape::Int),
    Row::reduce(Reduction::Bor, "harp_reduce_bor", Shape::Int),
    Row::reduce(Reduction::Bxor, "harp_reduce_bxor", Shape::Int),
    Row::reduce(Reduction::Fadd, "harp_reduce_fadd", Shape::Float),
    Row::reduce(Reduction::Fmin, "harp_reduce_fmin", Shape::Float),
    Row::reduce(Reduction::Fmax, "harp_reduce_fmax", Shape::Float),
    Row::new(Intrinsic::Undef, "harp_undef", Shape::Value, OF_GRID).truth(),
    Row::new(Intrinsic::Never, "harp_never", Shape::Value, OF_GRID).truth(),
    Row::new(Intrinsic::FrameEnd, "harp_frame_end", Shape::Word, DIVERGENT),
    Row::new(Intrinsic::ReturnAddress, "harp_return_address", Shape::Word, DIVERGENT),
];

impl Intrinsic {
    /// The lane's number in its warp.
    pub(crate) const LANE_ID: Intrinsic = Intrinsic::LaneWord(LaneField::Lane);
    /// The warp's number in its core.
    pub(crate) const WARP_ID: Intrinsic = Intrinsic::LaneWord(LaneField::Warp);
    /// The core's number.
    pub(crate) const CORE_ID: Intrinsic = Intrinsic::LaneWord(LaneField::Core);
    /// How many lanes a warp has.
    pub(crate) const LANE_COUNT: Intrinsic = Intrinsic::LaneWord(LaneField::Lanes);
    /// The work-item's number in its work-group.
    pub(crate) const LOCAL_INDEX: Intrinsic = Intrinsic::LaneWord(LaneField::LocalIndex);
    /// The address of the work-group's memory.
    pub(crate) const GROUP_MEMORY: Intrinsic = Intrinsic::GroupWord(GroupField::Memory);
    /// The work-item's position in the grid, by dimension.
    pub(crate) const GLOBAL_ID: [Intrinsic; 3] = [
        Intrinsic::GlobalIdX,
        Intrinsic::LaneWord(LaneField::GlobalIdY),
        Intrinsic::LaneWord(LaneField::GlobalIdZ),
    ];
    /// The work-item's position in its work-group.
    pub(crate) const LOCAL_ID: [Intrinsic; 3] = [
        Intrinsic::LaneWord(LaneField::LocalIdX),
        Intrinsic::LaneWord(LaneField::LocalIdY),
        Intrinsic::LaneWord(LaneField::LocalIdZ),
    ];
    /// The extent of its own work-group.
    pub(crate) const LOCAL_SIZE: [Intrinsic; 3] = [
        Intrinsic::GroupWord(GroupField::SizeX),
        Intrinsic::GroupWord(GroupField::SizeY),
        Intrinsic::GroupWord(GroupField::SizeZ),
    ];
    /// The position of the work-group among those of the grid.
    pub(crate) const GROUP_ID: [Intrinsic; 3] = [
        Intrinsic::GroupWord(GroupField::IdX),
        Intrinsic::GroupWord(GroupField::IdY),
        Intrinsic::GroupWord(GroupField::IdZ),
    ];

    /// The intrinsic with this name.
    pub(crate) fn from_name(name: &[u8]) -> Option<Intrinsic> {
        Row::of_name(name).map(|row| row.intrinsic)
    }

    /// The name of the called function.
    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    /// How the width of its result comes about.
    pub(crate) fn rule(self) -> Rule {
        self.row().rule
    }

    /// Whether more happens than that a result comes out.
    pub(crate) fn has_effect(self) -> bool {
        self.row().effect
    }

    /// Whether it concerns the lane that executes it alone, whichever others do.
    pub(crate) fn is_private(self) -> bool {
        self.row().private
    }

    /// Whether it tells which lane of which warp a work-item has, or which other work-items are in its warp.
    pub(crate) fn sees_lanes(self) -> bool {
        let numbers = [Intrinsic::LANE_ID, Intrinsic::WARP_ID, Intrinsic::CORE_ID];
        !self.is_private() || numbers.contains(&self)
    }

    /// Whether its result is a truth value, 0 or 1, or undefined.
    pub(crate) fn is_truth(self) -> bool {
        self.row().truth
    }

    /// Whether its operand is a truth value.
    pub(crate) fn asks_for_truth(self) -> bool {
        matches!(self.row().shape, Shape::Vote | Shape::Ballot)
    }

    /// Whether there is one of type `ty`, as a result or what is shuffled, for some integer as the word.
    pub(crate) fn is_of(self, ty: Type) -> bool {
        self.row().shape.is_of(ty)
    }

    /// Whether it gives the number of the lane, or a position of its work-item.
    pub(crate) fn is_number_of_lane(self) -> bool {
        matches!(self, Intrinsic::GlobalIdX | Intrinsic::LaneWord(_)) && self.rule() == DIVERGENT
    }

    /// The signature for results of type `ty` on a machine with words of type `word`. Of ids and the like
    /// the type is the machine's word; votes are about truth values, of type `i8`, whatever `ty` is.
    fn signature(self, ty: Type, word: Type) -> Signature {
        let (params, result) = self.row().shape.types(ty, word);
        let mut signature = Signature::new(CallConv::Fast);
        signature.params.extend(params.into_iter().map(AbiParam::new));
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

    /// The intrinsic that `inst` calls. None if `inst` is not a call, calls something else, or calls
    /// the name with other parameters and results than [`signature`](Intrinsic::signature) gives for some
    /// integer as the word.
    #[inline]
    pub(crate) fn of_call(func: &Function, inst: Inst) -> Option<Intrinsic> {
        match func.dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } => Intrinsic::of_callee(func, func_ref),
            _ => None,
        }
    }

    /// The intrinsic that this function is. Apart from [`of_call`](Intrinsic::of_call), which is asked about all
    /// instructions, so that the others cost little.
    fn of_callee(func: &Function, callee: FuncRef) -> Option<Intrinsic> {
        let callee = &func.dfg.ext_funcs[callee];
        let ExternalName::TestCase(name) = &callee.name else { return None };
        let row = Row::of_name(name.raw())?;
        let given = &func.dfg.signatures[callee.signature];
        let ty = given.returns.first().map_or(INVALID, |result| result.value_type);
        let word = given.params.last().map_or(INVALID, |param| param.value_type);
        let (params, result) = row.shape.types(ty, word);
        let is_word = row.shape != Shape::Shuffle || word.is_int();
        let agree = given.params.iter().copied().eq(params.into_iter().map(AbiParam::new))
            && given.returns.iter().copied().eq(result.map(AbiParam::new));
        (agree && is_word && row.shape.is_of(ty)).then_some(row.intrinsic)
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

    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.intrinsic == self).expect("every intrinsic has a row")
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
        for Row { intrinsic, name, .. } in TABLE {
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
        let (lane, assume) = (Some(Intrinsic::LANE_ID), Some(Intrinsic::AssumeUniform));
        let (shuffle, barrier) = (Some(Intrinsic::Shuffle), Some(Intrinsic::Barrier(Orders::All)));
        let lanes = [lane, None, None, assume, None];
        assert_eq!(found[..5], lanes);
        assert_eq!(found[5..], [None, shuffle, None, barrier, None, None]);
    }

    #[test]
    fn declarations_are_recognized() {
        let mut func = Function::new();
        for Row { intrinsic, name, .. } in TABLE {
            let callee = intrinsic.declare(&mut func, I32);
            let data = &func.dfg.ext_funcs[callee];
            assert_eq!(data.name.display(None).to_string(), format!("%{name}"));
        }
    }
}
