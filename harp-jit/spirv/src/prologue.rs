//! The values that a function reads at its start: arguments of the launch, extents of the grid, ids of the work-item.
//!
//! All of them are computed at the top of the entry block, once each, when they are first needed.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    self, AbiParam, Block, ExtFuncData, ExternalName, FuncRef, Function, GlobalValueData, Inst,
    InstBuilder, MemFlagsData, Signature, SourceLoc, Type,
};
use harp_isa::abi::ArgumentBlock;
use harp_jit::{ArchId, CallConv, ParamType, Printer, WordSize};
use hashbrown::HashMap;

/// What is computed at the top of the entry block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Item {
    /// A call of an intrinsic without arguments that gives a word.
    Word(&'static str),
    /// A word of the argument block at an offset.
    Header(u32),
    /// Where words of the launch are that the linker knows by this name.
    Words(&'static str),
    /// One of these words, at an offset.
    LaunchWord(&'static str, u32),
    /// An argument: its type and the index of its first word.
    Argument(ParamType, u32),
}

/// The top of a function's entry block.
pub(crate) struct Prologue {
    entry: Block,
    arch: ArchId,
    word: Type,
    pub(crate) argument_block: ir::Value,
    last: Option<Inst>,
    items: HashMap<Item, ir::Value>,
    intrinsics: HashMap<(&'static str, Type), FuncRef>,
    printer: Option<Printer>,
}

impl Prologue {
    pub(crate) fn new(
        entry: Block,
        arch: ArchId,
        word: Type,
        argument_block: ir::Value,
    ) -> Prologue {
        Prologue {
            entry,
            arch,
            word,
            argument_block,
            last: None,
            items: HashMap::new(),
            intrinsics: HashMap::new(),
            printer: None,
        }
    }

    /// Takes a parameter of the function for the value of an item.
    pub(crate) fn give(&mut self, item: Item, value: ir::Value) {
        self.items.insert(item, value);
    }

    /// The value of an item.
    pub(crate) fn item(&mut self, func: &mut Function, item: Item) -> ir::Value {
        if let Some(&value) = self.items.get(&item) {
            return value;
        }
        let (word, block) = (self.word, self.argument_block);
        let value = match item {
            Item::Word(name) => {
                let callee = self.intrinsic(func, name, &[], Some(word), word);
                self.insert(func, |at| {
                    let call = at.ins().call(callee, &[]);
                    at.func.dfg.first_result(call)
                })
            }
            Item::Header(offset) => self.constant_word(func, block, offset),
            Item::Words(name) => {
                let symbol = func.create_global_value(GlobalValueData::Symbol {
                    name: ExternalName::testcase(name),
                    offset: 0.into(),
                    colocated: true,
                    tls: false,
                });
                self.insert(func, |at| at.ins().symbol_value(word, symbol))
            }
            Item::LaunchWord(name, offset) => {
                let words = self.item(func, Item::Words(name));
                self.constant_word(func, words, offset)
            }
            Item::Argument(ty, index) => {
                let size = self.arch.word();
                let offset = ArgumentBlock::argument(index, size).cast_signed();
                self.insert(func, |at| ty.load(at, block, offset, size))
            }
        };
        self.items.insert(item, value);
        value
    }

    /// Loads a word that is not written during a launch.
    fn constant_word(&mut self, func: &mut Function, base: ir::Value, offset: u32) -> ir::Value {
        let word = self.word;
        let flags =
            MemFlagsData::new().with_notrap().with_aligned().with_readonly().with_can_move();
        self.insert(func, |at| at.ins().load(word, flags, base, offset.cast_signed()))
    }

    /// A call of the intrinsic `name` at the current place is of this function; `ty` tells apart those whose
    /// parameters depend on a type.
    pub(crate) fn intrinsic(
        &mut self,
        func: &mut Function,
        name: &'static str,
        params: &[Type],
        result: Option<Type>,
        ty: Type,
    ) -> FuncRef {
        *self.intrinsics.entry((name, ty)).or_insert_with(|| {
            let mut signature = Signature::new(CallConv::Fast);
            signature.params.extend(params.iter().copied().map(AbiParam::new));
            signature.returns.extend(result.map(AbiParam::new));
            let signature = func.import_signature(signature);
            func.import_function(ExtFuncData {
                name: ExternalName::testcase(name),
                signature,
                colocated: true,
                patchable: false,
            })
        })
    }

    /// Where the lane prints to. The address of the print area is behind the kernel's `argument_words`.
    pub(crate) fn printer(&mut self, func: &mut Function, argument_words: u32) -> Printer {
        if let Some(printer) = self.printer {
            return printer;
        }
        let size = self.arch.word();
        let lane = ["harp_core_id", "harp_warp_id", "harp_lane_id"]
            .map(|name| self.item(func, Item::Word(name)));
        let position = GLOBAL_ID.map(|name| self.item(func, Item::Word(name)));
        let extents =
            [0, 1].map(|dim| self.item(func, Item::Header(ArgumentBlock::grid_extent(dim, size))));
        let area = match size {
            WordSize::Four => ParamType::I32,
            WordSize::Eight => ParamType::I64,
        };
        let area = self.item(func, Item::Argument(area, argument_words));
        let arch = self.arch;
        let region = self.insert(func, |at| Printer::region(at, arch, area, lane));
        let work_item = self.insert(func, |at| Printer::work_item(at, position, extents));
        let printer = Printer { region, work_item };
        self.printer = Some(printer);
        printer
    }

    /// Builds a value behind what is at the top of the entry block already.
    pub(crate) fn insert(
        &mut self,
        func: &mut Function,
        build: impl FnOnce(&mut FuncCursor<'_>) -> ir::Value,
    ) -> ir::Value {
        let mut at = FuncCursor::new(func).with_srcloc(SourceLoc::default());
        match self.last {
            Some(last) => at.goto_after_inst(last),
            None => at.goto_first_insertion_point(self.entry),
        }
        let value = build(&mut at);
        self.last = at.func.dfg.value_def(value).inst();
        value
    }
}

/// The intrinsics that give a work-item's position in the grid.
pub(crate) const GLOBAL_ID: [&str; 3] =
    ["harp_global_id_x", "harp_global_id_y", "harp_global_id_z"];

/// Those that give its position in the work-group.
pub(crate) const LOCAL_ID: [&str; 3] = ["harp_local_id_x", "harp_local_id_y", "harp_local_id_z"];

/// Those that give the extents of its work-group.
pub(crate) const LOCAL_SIZE: [&str; 3] =
    ["harp_local_size_x", "harp_local_size_y", "harp_local_size_z"];

/// Those that give the position of its work-group.
pub(crate) const GROUP_ID: [&str; 3] = ["harp_group_id_x", "harp_group_id_y", "harp_group_id_z"];
