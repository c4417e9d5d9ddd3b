//! The values that a kernel reads at its start: its parameters, the extents of the grid and its groups, and
//! the work-item's ids.
//!
//! All of them are read at the top of the entry block, in the order of the calls. So they can be used in
//! every block, and each id is read once.

use std::panic::Location;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Block, ExternalName, GlobalValueData, Inst, InstBuilder, InstructionData, Type, Value, types,
};
use harp_isa::WordSize;
use harp_isa::abi::{ArgumentBlock, LaunchOffset};
use hashbrown::HashMap;

use super::kernel_source::param_words;
use super::param::argument_flags;
use super::{Caller, KernelBuilder, Param, ParamType};
use crate::accesses::GroupArray;
use crate::error::BuildErrorKind;
use crate::intrinsic::Intrinsic;
use crate::print::Printer;
use crate::source::SourcePlace;

/// The largest number of parameters: all must be within reach of a load's offset.
const MAX_PARAMS: usize = 4096;

/// The largest memory of a work-group in bytes, arrays sized at the launch included.
pub const MAX_GROUP_BYTES: u32 = 1 << 28;

/// The top of the entry block as far as it is built.
pub(super) struct Prologue {
    entry: Block,
    argument_block: Value,
    last: Option<Inst>,
    ids: HashMap<Intrinsic, Value>,
    /// Words of the argument block's header, by offset.
    extents: HashMap<u32, Value>,
    /// Words of the launch's offset, by dimension.
    offsets: HashMap<u8, Value>,
    /// What identifies the lanes that entered the kernel, once that was asked for.
    pub(super) entered: Vec<Value>,
    /// Where the lane prints to, once the kernel prints, and the load of the print area's address, whose offset is known
    /// once all parameters are.
    printer: Option<(Printer, Inst)>,
}

impl Prologue {
    pub(super) fn new(entry: Block, argument_block: Value) -> Prologue {
        Prologue {
            entry,
            argument_block,
            last: None,
            ids: HashMap::new(),
            extents: HashMap::new(),
            offsets: HashMap::new(),
            entered: Vec::new(),
            printer: None,
        }
    }
}

impl KernelBuilder<'_> {
    /// Adds a parameter without a name: the next words of the argument block. It can be used in every block.
    ///
    /// [`buffer`](Self::buffer) and [`scalar`](Self::scalar) add parameters with names, of Rust's types.
    ///
    /// More than 4096 parameters are an error.
    #[track_caller]
    pub fn param(&mut self, ty: ParamType) -> Value {
        self.add_param(Param::unnamed(ty), Location::caller())
    }

    pub(super) fn add_param(&mut self, param: Param, place: Caller) -> Value {
        let (index, word, ty) = (self.params.len(), self.arch.word(), param.ty());
        let first = if index < MAX_PARAMS {
            param_words(self.params, self.arch)
        } else {
            self.fail(BuildErrorKind::TooManyParameters { index, limit: MAX_PARAMS }, place);
            0
        };
        if let Some(name) = param.name()
            && self.params.iter().any(|other| other.name() == Some(name))
        {
            self.fail(BuildErrorKind::DuplicateParameter { name: name.to_owned() }, place);
        }
        self.params.push(param);
        let offset = ArgumentBlock::argument(first, word).cast_signed();
        let argument_block = self.prologue.argument_block;
        if ty != ParamType::Group {
            return self.in_prologue(place, |at| ty.load(at, argument_block, offset, word));
        }
        self.groups.used = true;
        let memory = self.id(Intrinsic::GROUP_MEMORY, place);
        self.in_prologue(place, |at| {
            let start = ty.load(at, argument_block, offset, word);
            at.ins().iadd(memory, start)
        })
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

    /// The offset of the launch in dimension `dim`, 0 to 2: a word, equal in all lanes. A host that runs a grid in pieces gives
    /// each its place in the whole; [`global_id`](Self::global_id) counts from 0 in all of them. 0 unless the launch has one.
    ///
    /// Another dimension is an error.
    #[track_caller]
    pub fn global_offset(&mut self, dim: u8) -> Value {
        let place = Location::caller();
        let Some(&offset) = LaunchOffset::ALL.get(usize::from(dim)) else {
            return self.no_dimension(dim, place);
        };
        if let Some(&value) = self.prologue.offsets.get(&dim) {
            return value;
        }
        let (ty, distance) = (self.word_int(), offset.offset(self.arch.word()).cast_signed());
        let words = self.inner.func.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::testcase(LaunchOffset::SYMBOL),
            offset: 0.into(),
            colocated: true,
            tls: false,
        });
        let value = self.in_prologue(place, |at| {
            let words = at.ins().symbol_value(ty, words);
            at.ins().load(ty, argument_flags(), words, distance)
        });
        self.prologue.offsets.insert(dim, value);
        value
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
        self.add_group_array(None, ty, len, Location::caller())
    }

    pub(super) fn add_group_array(
        &mut self,
        name: Option<&str>,
        ty: Type,
        len: u32,
        place: Caller,
    ) -> Value {
        let ty = self.scalar_type(ty, "element", place);
        let bytes = u64::from(ty.bytes());
        let start = u64::from(self.groups.bytes).next_multiple_of(bytes);
        let end = start + u64::from(len) * bytes;
        let memory = self.id(Intrinsic::GROUP_MEMORY, place);
        let Some(size) = u32::try_from(end).ok().filter(|&size| size <= MAX_GROUP_BYTES) else {
            let (given, limit, name) = (end, MAX_GROUP_BYTES, name.map(str::to_owned));
            self.fail(BuildErrorKind::GroupMemory { name, given, limit }, place);
            return memory;
        };
        self.groups.bytes = size;
        let bytes = size - (end - start) as u32..size;
        self.groups.arrays.push(GroupArray { name: name.map(str::to_owned), bytes });
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

    /// Where the lane prints to; the first use computes it.
    pub(super) fn printer(&mut self, place: Caller) -> Printer {
        if let Some((printer, _)) = self.prologue.printer {
            return printer;
        }
        let ids = [Intrinsic::CORE_ID, Intrinsic::WARP_ID, Intrinsic::LANE_ID];
        let [core, warp, lane] = ids.map(|id| self.id(id, place));
        let [x, y, z] = Intrinsic::GLOBAL_ID.map(|id| self.id(id, place));
        let [columns, rows] = [0, 1].map(|dim| self.extent(ArgumentBlock::grid_extent, dim, place));
        let (arch, argument_block) = (self.arch, self.prologue.argument_block);
        let position = [x, y, z];
        let work_item =
            self.in_prologue(place, |at| Printer::work_item(at, position, [columns, rows]));
        let ty = self.word_int();
        let area =
            self.in_prologue(place, |at| at.ins().load(ty, argument_flags(), argument_block, 0));
        let region =
            self.in_prologue(place, |at| Printer::region(at, arch, area, [core, warp, lane]));
        let area = self.inner.func.dfg.value_def(area).inst().expect("it is a load's result");
        let printer = Printer { region, work_item };
        self.prologue.printer = Some((printer, area));
        printer
    }

    /// Makes the kernel load the print area's address from behind the parameters, which are complete.
    pub(super) fn place_print_area(&mut self) {
        let Some((_, area)) = self.prologue.printer else { return };
        let words = param_words(self.params, self.arch);
        let address = ArgumentBlock::argument(words, self.arch.word()).cast_signed();
        if let InstructionData::Load { offset, .. } = &mut self.inner.func.dfg.insts[area] {
            *offset = address.into();
        }
    }

    /// What identifies the lanes that entered the kernel, as [`executing`](Self::executing) gives it; the
    /// first use computes it.
    pub(super) fn entered(&mut self, place: Caller) -> Vec<Value> {
        if self.prologue.entered.is_empty() {
            for &part in self.executing() {
                let callee = self.callee(part, self.word_int());
                let value = self.in_prologue(place, |at| {
                    let one = at.ins().iconst(types::I8, 1);
                    let call = at.ins().call(callee, &[one]);
                    at.func.dfg.first_result(call)
                });
                self.prologue.entered.push(value);
            }
        }
        self.prologue.entered.clone()
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
