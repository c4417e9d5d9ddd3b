//! Accesses of words at addresses with a constant distance that are no neighbours, such as the slots of the lanes' stacks.

use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::FunctionBuilder;
use harp_isa::Sharing;

use super::super::parts::{load, store, vector_of};
use super::super::{Emitter, aligned};
use super::Helper;
use crate::body::{Access, Body, Inst};
use crate::class::Class;
use crate::frame::scratch;
use crate::region::Region;
use crate::rules::{MANY_REGISTERS, Rules};
use crate::shape::Shape;
use crate::state::State;

/// An access of a word in each lane at an address of the host and at this distance from lane to lane. All addresses have been
/// checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Row {
    access: Access,
    stride: u64,
    /// Whether it stores the words in scratch vector 1. Otherwise it loads into scratch vector 3.
    is_store: bool,
}

impl Emitter<'_, '_> {
    /// Loads a row whose lowest word is at that address of the host.
    pub(in super::super) fn call_for_row(
        &mut self,
        address: Value,
        stride: u64,
        access: Access,
    ) -> Vec<Value> {
        self.call_helper(Helper::Row(Row { access, stride, is_store: false }), address);
        self.scratch_vectors(3)
    }

    /// Stores a row.
    pub(in super::super) fn call_to_store_row(
        &mut self,
        values: &[Value],
        address: Value,
        stride: u64,
        access: Access,
    ) {
        self.put_scratch(1, values);
        self.call_helper(Helper::Row(Row { access, stride, is_store: true }), address);
    }
}

impl Row {
    /// Emits the function.
    pub(super) fn body<'b>(
        self,
        mut b: FunctionBuilder<'b>,
        (frame, address): (Value, Value),
        shape: Shape,
    ) -> FunctionBuilder<'b> {
        match self.is_store {
            true => self.stores(&mut b, frame, address, shape),
            false => self.loads(&mut b, frame, address, shape),
        }
        b.ins().return_(&[]);
        b
    }

    fn stores(self, b: &mut FunctionBuilder<'_>, frame: Value, address: Value, shape: Shape) {
        let int = shape.int();
        for lane in 0..shape.lanes {
            let here = scratch(1) + (lane * shape.bytes()) as i32;
            let word = b.ins().load(int, aligned(), frame, here);
            store(b, int, (word, address, shape.distance(self.stride, lane)), self.access);
        }
    }

    fn loads(self, b: &mut FunctionBuilder<'_>, frame: Value, address: Value, shape: Shape) {
        for k in 0..shape.vectors() {
            let places = shape.lanes_of(k).map(|lane| shape.distance(self.stride, lane));
            let words: Vec<Value> = places
                .map(|distance| load(b, shape.int(), (address, distance), self.access))
                .collect();
            let vector = vector_of(b, shape.int_vector(), &words);
            b.ins().store(aligned(), vector, frame, scratch(3) + 16 * k as i32);
        }
    }
}

/// Whether a region has so many accesses of such words that to do them where they are, which is somewhat faster, would take too
/// long to translate.
pub(in super::super) fn has_many_rows(region: &Region, rules: Rules) -> bool {
    let mut rows = 0;
    for (key, block) in &region.blocks {
        let mut state = block.state.clone();
        for inst in &block.insts {
            rows += usize::from(is_strided(inst, &state, rules));
            rules.step(&mut state, inst, key.full);
        }
    }
    let most =
        if rules.shape.arch.gprs() < MANY_REGISTERS { MANY_WORDS_OF_SLOTS } else { MANY_WORDS };
    rows * rules.shape.lanes > most
}

/// With more words than this a region has many.
const MANY_WORDS: usize = 768;
/// The same where there are few registers: there most of what code does is to load and store slots of stacks.
const MANY_WORDS_OF_SLOTS: usize = 8192;

/// Whether an instruction accesses such words.
fn is_strided(inst: &Inst, state: &State, rules: Rules) -> bool {
    let (Body::Load { base, access, .. } | Body::Store { base, access, .. }) = inst.body else {
        return false;
    };
    let Class::Affine(stride) = state.regs[usize::from(base)] else { return false };
    let is_own = stride != access.bytes as u64 && rules.is_row(stride, access);
    is_own && inst.sharing == Sharing::Each
}
