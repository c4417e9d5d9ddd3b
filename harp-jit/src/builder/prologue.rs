//! What a kernel reads before anything else: its parameters, the extent of the grid and the
//! work-item's ids.
//!
//! All of it stands at the top of the entry block, in the order of the calls, so that the values
//! can be used everywhere and each id is asked for once.

use std::panic::Location;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Inst, InstBuilder, Value};
use harp_isa::abi::ArgumentBlock;
use hashbrown::HashMap;

use super::param::argument_flags;
use super::{BuildErrorKind, Caller, KernelBuilder, ParamType};
use crate::intrinsic::Intrinsic;
use crate::source::SourcePlace;

/// Parameters of a kernel, so that every one lies within reach of a load's offset.
const MAX_PARAMS: usize = 4096;

/// The top of the entry block as far as it is built.
pub(super) struct Prologue {
    entry: Block,
    argument_block: Value,
    last: Option<Inst>,
    ids: HashMap<Intrinsic, Value>,
    sizes: [Option<Value>; 3],
}

impl Prologue {
    pub(super) fn new(entry: Block, argument_block: Value) -> Prologue {
        Prologue { entry, argument_block, last: None, ids: HashMap::new(), sizes: [None; 3] }
    }
}

impl KernelBuilder<'_> {
    /// Adds a parameter: the next word of the argument block. It can be used in every block.
    ///
    /// `I64` and `F64` on a machine with 4-byte words are an error, and so are more than 4096 parameters.
    #[track_caller]
    pub fn param(&mut self, ty: ParamType) -> Value {
        let place = Location::caller();
        let (index, word) = (self.params.len(), self.arch.word());
        let number = match u32::try_from(index) {
            Ok(number) if index < MAX_PARAMS => number,
            _ => {
                self.fail(BuildErrorKind::TooManyParameters { index, limit: MAX_PARAMS }, place);
                0
            }
        };
        self.params.push(ty);
        if !ty.fits(word) {
            self.fail(BuildErrorKind::Parameter { index, ty, arch: self.arch }, place);
        }
        let offset = ArgumentBlock::argument(number, word);
        let argument_block = self.prologue.argument_block;
        self.in_prologue(place, |at| ty.load(at, argument_block, offset.cast_signed(), word))
    }

    /// The work-item's position in the grid in dimension `dim`, 0 to 2: a word, unsigned.
    ///
    /// Another dimension is an error.
    #[track_caller]
    pub fn global_id(&mut self, dim: u8) -> Value {
        let place = Location::caller();
        match Intrinsic::global_id(dim) {
            Some(id) => self.id(id, place),
            None => self.no_dimension(dim, place),
        }
    }

    /// The extent of the grid in dimension `dim`, 0 to 2: a word, unsigned, equal in all lanes.
    ///
    /// Another dimension is an error.
    #[track_caller]
    pub fn global_size(&mut self, dim: u8) -> Value {
        let place = Location::caller();
        let known = match self.prologue.sizes.get(usize::from(dim)) {
            Some(known) => *known,
            None => return self.no_dimension(dim, place),
        };
        if let Some(size) = known {
            return size;
        }
        let (ty, argument_block) = (self.word_int(), self.prologue.argument_block);
        let offset = ArgumentBlock::grid_extent(dim, self.arch.word()).cast_signed();
        let load =
            |at: &mut FuncCursor<'_>| at.ins().load(ty, argument_flags(), argument_block, offset);
        let size = self.in_prologue(place, load);
        self.prologue.sizes[usize::from(dim)] = Some(size);
        size
    }

    /// The lane's number in its warp, a word.
    #[track_caller]
    pub fn lane_id(&mut self) -> Value {
        self.id(Intrinsic::LaneId, Location::caller())
    }

    /// The warp's number in its core, a word, equal in all lanes of the warp.
    #[track_caller]
    pub fn warp_id(&mut self) -> Value {
        self.id(Intrinsic::WarpId, Location::caller())
    }

    /// The core's number, a word, equal in all lanes of a warp.
    #[track_caller]
    pub fn core_id(&mut self) -> Value {
        self.id(Intrinsic::CoreId, Location::caller())
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

    /// Builds a value after what is already at the top of the entry block.
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
