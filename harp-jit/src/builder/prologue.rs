//! The values that a kernel reads at its start: its parameters, the extents of the grid and its groups, and
//! the work-item's ids.
//!
//! All of them are read at the top of the entry block, in the order of the calls. So they can be used in
//! every block, and each id is read once.

use std::panic::Location;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Inst, InstBuilder, Type, Value};
use harp_isa::WordSize;
use harp_isa::abi::ArgumentBlock;
use hashbrown::HashMap;

use super::param::argument_flags;
use super::{Caller, KernelBuilder, ParamType};
use crate::error::BuildErrorKind;
use crate::intrinsic::Intrinsic;
use crate::source::SourcePlace;

/// The largest number of parameters: all must be within reach of a load's offset.
const MAX_PARAMS: usize = 4096;

/// The largest memory of a work-group in bytes.
const MAX_GROUP_BYTES: u32 = 1 << 28;

/// The top of the entry block as far as it is built.
pub(super) struct Prologue {
    entry: Block,
    argument_block: Value,
    last: Option<Inst>,
    ids: HashMap<Intrinsic, Value>,
    /// Words of the argument block's header, by offset.
    extents: HashMap<u32, Value>,
}

impl Prologue {
    pub(super) fn new(entry: Block, argument_block: Value) -> Prologue {
        Prologue { entry, argument_block, last: None, ids: HashMap::new(), extents: HashMap::new() }
    }
}

impl KernelBuilder<'_> {
    /// Adds a parameter: the next words of the argument block. It can be used in every block.
    ///
    /// More than 4096 parameters are an error.
    #[track_caller]
    pub fn param(&mut self, ty: ParamType) -> Value {
        let place = Location::caller();
        let (index, word) = (self.params.len(), self.arch.word());
        let first = if index < MAX_PARAMS {
            self.params.iter().map(|ty| ty.words(word)).sum()
        } else {
            self.fail(BuildErrorKind::TooManyParameters { index, limit: MAX_PARAMS }, place);
            0
        };
        self.params.push(ty);
        let offset = ArgumentBlock::argument(first, word);
        let argument_block = self.prologue.argument_block;
        self.in_prologue(place, |at| ty.load(at, argument_block, offset.cast_signed(), word))
    }

    /// The work-item's position in the grid in dimension `dim`, 0 to 2: a word, unsigned.
    ///
    /// Another dimension is an error.
    #[track_caller]
    pub fn global_id(&mut self, dim: u8) -> Value {
        self.position(&Intrinsic::GLOBAL_ID, dim, Location::caller())
    }

    /// The extent of the grid in dimension `dim`, 0 to 2: a word, unsigned, equal in all lanes.
    ///
    /// Another dimension is an error.
    #[track_caller]
    pub fn global_size(&mut self, dim: u8) -> Value {
        self.extent(ArgumentBlock::grid_extent, dim, Location::caller())
    }

    /// The work-item's position in its work-group in dimension `dim`, 0 to 2: a word, unsigned.
    ///
    /// A kernel that uses this, or anything else about work-groups, can only be launched with work-groups.
    /// Another dimension is an error.
    #[track_caller]
    pub fn local_id(&mut self, dim: u8) -> Value {
        self.position(&Intrinsic::LOCAL_ID, dim, Location::caller())
    }

    /// The work-item's number in its work-group, counted along the first dimension first: a word. Warps
    /// take the work-items of a group in this order.
    #[track_caller]
    pub fn local_index(&mut self) -> Value {
        self.id(Intrinsic::LOCAL_INDEX, Location::caller())
    }

    /// The extent of the work-item's own work-group in dimension `dim`, 0 to 2: a word, unsigned, equal
    /// in all lanes of the group. It is smaller than [`group_size`](Self::group_size) for groups that
    /// would reach beyond the grid.
    ///
    /// Another dimension is an error.
    #[track_caller]
    pub fn local_size(&mut self, dim: u8) -> Value {
        self.position(&Intrinsic::LOCAL_SIZE, dim, Location::caller())
    }

    /// The position of the work-group among those of the grid in dimension `dim`, 0 to 2: a word,
    /// unsigned, equal in all lanes of the group.
    ///
    /// Another dimension is an error.
    #[track_caller]
    pub fn group_id(&mut self, dim: u8) -> Value {
        self.position(&Intrinsic::GROUP_ID, dim, Location::caller())
    }

    /// The extent of work-groups in dimension `dim`, 0 to 2, as set at the launch: a word, unsigned, equal in
    /// all lanes.
    ///
    /// Another dimension is an error.
    #[track_caller]
    pub fn group_size(&mut self, dim: u8) -> Value {
        self.groups.used = true;
        self.extent(ArgumentBlock::group_extent, dim, Location::caller())
    }

    /// How many work-groups the grid has in dimension `dim`, 0 to 2: a word, unsigned, equal in all
    /// lanes.
    ///
    /// Another dimension is an error.
    #[track_caller]
    pub fn group_count(&mut self, dim: u8) -> Value {
        self.groups.used = true;
        self.extent(ArgumentBlock::group_count, dim, Location::caller())
    }

    /// The address of memory for an array of `len` elements of type `ty`, which the work-items of a group
    /// share: a word, equal in all lanes of the group. Each group has its own array; its initial contents are
    /// unspecified.
    ///
    /// More than 2^28 bytes in a kernel are an error.
    #[track_caller]
    pub fn group_array(&mut self, ty: Type, len: u32) -> Value {
        let place = Location::caller();
        let ty = self.scalar_type(ty, "element", place);
        let bytes = u64::from(ty.bytes());
        let start = u64::from(self.groups.bytes).next_multiple_of(bytes);
        let end = start + u64::from(len) * bytes;
        let memory = self.id(Intrinsic::GROUP_MEMORY, place);
        let Some(size) = u32::try_from(end).ok().filter(|&size| size <= MAX_GROUP_BYTES) else {
            let (given, limit) = (end, MAX_GROUP_BYTES);
            self.fail(BuildErrorKind::GroupMemory { given, limit }, place);
            return memory;
        };
        self.groups.bytes = size;
        self.in_prologue(place, |at| at.ins().iadd_imm_s(memory, start.cast_signed()))
    }

    /// How many lanes a warp has: a word, equal in all lanes.
    #[track_caller]
    pub fn lane_count(&mut self) -> Value {
        self.id(Intrinsic::LANE_COUNT, Location::caller())
    }

    /// The lane's number in its warp, a word.
    #[track_caller]
    pub fn lane_id(&mut self) -> Value {
        self.id(Intrinsic::LANE_ID, Location::caller())
    }

    /// The warp's number in its core, a word, equal in all lanes of the warp.
    #[track_caller]
    pub fn warp_id(&mut self) -> Value {
        self.id(Intrinsic::WARP_ID, Location::caller())
    }

    /// The core's number, a word, equal in all lanes of a warp.
    #[track_caller]
    pub fn core_id(&mut self) -> Value {
        self.id(Intrinsic::CORE_ID, Location::caller())
    }

    /// The value of one of three intrinsics, chosen by dimension.
    fn position(&mut self, ids: &[Intrinsic; 3], dim: u8, place: Caller) -> Value {
        match ids.get(usize::from(dim)) {
            Some(&id) => self.id(id, place),
            None => self.no_dimension(dim, place),
        }
    }

    /// A word of the argument block's header; `offset` computes its offset.
    fn extent(&mut self, offset: fn(u8, WordSize) -> u32, dim: u8, place: Caller) -> Value {
        if usize::from(dim) >= Intrinsic::GLOBAL_ID.len() {
            return self.no_dimension(dim, place);
        }
        let (ty, argument_block) = (self.word_int(), self.prologue.argument_block);
        let offset = offset(dim, self.arch.word());
        if let Some(&extent) = self.prologue.extents.get(&offset) {
            return extent;
        }
        let extent = self.in_prologue(place, |at| {
            at.ins().load(ty, argument_flags(), argument_block, offset.cast_signed())
        });
        self.prologue.extents.insert(offset, extent);
        extent
    }

    fn id(&mut self, id: Intrinsic, place: Caller) -> Value {
        if let Some(&value) = self.prologue.ids.get(&id) {
            return value;
        }
        let callee = self.callee(id, self.word_int());
        let value = self.in_prologue(place, |at| {
            let call = at.ins().call(callee, &[]);
            at.func.dfg.first_result(call)
        });
        self.prologue.ids.insert(id, value);
        value
    }

    fn no_dimension(&mut self, given: u8, place: Caller) -> Value {
        self.fail(BuildErrorKind::Dimension { given }, place);
        let ty = self.word_int();
        self.in_prologue(place, |at| at.ins().iconst(ty, 0))
    }

    /// Builds a value behind what is at the top of the entry block already.
    fn in_prologue(
        &mut self,
        place: Caller,
        build: impl FnOnce(&mut FuncCursor<'_>) -> Value,
    ) -> Value {
        let number = self.sources.intern(SourcePlace::from(place));
        let mut at = FuncCursor::new(self.inner.func).with_srcloc(number);
        match self.prologue.last {
            Some(last) => at.goto_after_inst(last),
            None => at.goto_first_insertion_point(self.prologue.entry),
        }
        let value = build(&mut at);
        self.prologue.last = at.func.dfg.value_def(value).inst();
        value
    }
}
