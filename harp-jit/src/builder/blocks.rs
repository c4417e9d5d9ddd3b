//! Blocks, and the end of building.

use std::panic::Location;

use cranelift_codegen::ir::{Block, Inst, Type, Value};

use super::{Caller, KernelBuilder, machine_config};
use crate::error::{BuildError, BuildErrorKind};

/// How far the building of a block has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It has no instructions.
    Empty,
    /// It has no branch, return or trap yet.
    Open,
    /// It has a branch, return or trap at its end.
    Ended,
}

impl KernelBuilder<'_> {
    /// Creates a block. It is inserted into the function with its first instruction.
    pub fn create_block(&mut self) -> Block {
        self.inner.create_block()
    }

    /// Makes `block` the current block. The previous one must have ended.
    #[track_caller]
    pub fn switch_to_block(&mut self, block: Block) {
        let place = Location::caller();
        if !self.known_block(block, place) {
            return;
        }
        let current = self.current();
        if current == block {
            return;
        }
        if self.progress(current) == Progress::Open && !self.inner.is_unreachable() {
            self.fail(BuildErrorKind::BlockOpen { block: current }, place);
            return;
        }
        if self.progress(block) == Progress::Ended {
            self.fail(BuildErrorKind::BlockEnded { block }, place);
            return;
        }
        self.inner.switch_to_block(block);
    }

    /// Declares that `block` gets no more predecessors, which lets variables be resolved there.
    /// [`finalize`](KernelBuilder::finalize) seals all blocks that are not sealed.
    #[track_caller]
    pub fn seal_block(&mut self, block: Block) {
        let place = Location::caller();
        if !self.known_block(block, place) {
            return;
        }
        if self.sealed.insert(block) {
            self.inner.seal_block(block);
        } else {
            self.fail(BuildErrorKind::BlockSealed { block }, place);
        }
    }

    /// Seals every block created so far.
    pub fn seal_all_blocks(&mut self) {
        self.inner.seal_all_blocks();
        self.sealed.extend(self.inner.func.dfg.blocks.iter());
    }

    /// Adds a parameter to a block that has no instructions yet.
    #[track_caller]
    pub fn append_block_param(&mut self, block: Block, ty: Type) -> Value {
        let place = Location::caller();
        let ty = self.scalar_type(ty, "block parameter", place);
        if self.known_block(block, place) {
            if self.progress(block) == Progress::Empty {
                return self.inner.append_block_param(block, ty);
            }
            self.fail(BuildErrorKind::LateBlockParam { block }, place);
        }
        self.enter(place);
        self.placeholder(ty)
    }

    /// The parameters of a block; none if the kernel has no such block.
    pub fn block_params(&self, block: Block) -> &[Value] {
        if self.inner.func.dfg.block_is_valid(block) { self.inner.block_params(block) } else { &[] }
    }

    /// Ends building. The kernel can then be compiled.
    ///
    /// # Errors
    ///
    /// The first misuse of the builder; a block without a branch, return or trap at its end; a
    /// branch to a block without instructions.
    #[track_caller]
    pub fn finalize(mut self) -> Result<(), BuildError> {
        let place = Location::caller();
        self.seal_all_blocks();
        self.check_blocks(place);
        if let Some(error) = self.error {
            return Err(error);
        }
        self.place_print_area();
        self.inner.finalize(machine_config(self.arch));
        *self.finalized = true;
        Ok(())
    }

    fn check_blocks(&mut self, place: Caller) {
        let blocks: Vec<Block> = self.inner.func.layout.blocks().collect();
        for block in blocks {
            if self.progress(block) != Progress::Ended {
                self.fail(BuildErrorKind::BlockOpen { block }, place);
            }
            if let Err((inst, message)) = self.inner.func.is_block_basic(block) {
                self.fail_at(BuildErrorKind::Malformed { block, message }, inst);
            }
            let empty = self
                .inner
                .func
                .block_successors(block)
                .find(|&target| self.progress(target) == Progress::Empty);
            if let (Some(block), Some(inst)) = (empty, self.inner.func.layout.last_inst(block)) {
                self.fail_at(BuildErrorKind::BlockEmpty { block }, inst);
            }
        }
    }

    /// Keeps the first error, with the place that `inst` comes from.
    fn fail_at(&mut self, kind: BuildErrorKind, inst: Inst) {
        let place = self.sources.place(self.inner.func.srcloc(inst)).cloned();
        self.error.get_or_insert(BuildError { kind, place });
    }

    /// If the current block has ended, records the error and goes on in an unreachable block.
    pub(super) fn reopen(&mut self, place: Caller) {
        let block = self.current();
        if self.progress(block) != Progress::Ended {
            return;
        }
        self.fail(BuildErrorKind::BlockEnded { block }, place);
        let dead = self.inner.create_block();
        self.switch_to_sealed(dead);
    }

    /// Switches to `block`, which gets no more predecessors, and seals it.
    ///
    /// Does nothing if user code has ended the block by guessing its number: there [`reopen`](Self::reopen)
    /// records the error.
    pub(super) fn switch_to_sealed(&mut self, block: Block) {
        self.seal_once(block);
        if self.progress(block) != Progress::Ended {
            self.inner.switch_to_block(block);
        }
    }

    /// Seals `block` unless it is sealed.
    pub(super) fn seal_once(&mut self, block: Block) {
        if self.sealed.insert(block) {
            self.inner.seal_block(block);
        }
    }

    /// Whether the current block has its branch, return or trap.
    pub(super) fn has_ended(&self) -> bool {
        self.progress(self.current()) == Progress::Ended
    }

    fn current(&self) -> Block {
        self.inner.current_block().expect("the builder starts in the entry block")
    }

    fn progress(&self, block: Block) -> Progress {
        let func = &self.inner.func;
        if !func.layout.is_block_inserted(block) {
            return Progress::Empty;
        }
        match func.layout.last_inst(block) {
            Some(inst) if func.dfg.insts[inst].opcode().is_terminator() => Progress::Ended,
            _ => Progress::Open,
        }
    }

    fn known_block(&mut self, block: Block, place: Caller) -> bool {
        let known = self.inner.func.dfg.block_is_valid(block);
        if !known {
            self.fail(BuildErrorKind::UnknownBlock { block }, place);
        }
        known
    }
}
