//! Pieces of code that regions and their helpers have in common.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, ConstantData, InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::FunctionBuilder;

use crate::body::Access;
use crate::shape::{Shape, VECTOR_BYTES};

/// Accesses of guest memory.
pub(super) fn guest() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// A word that is loaded from an address of the host and a distance from there.
pub(super) fn load(
    b: &mut FunctionBuilder<'_>,
    int: Type,
    (address, distance): (Value, i32),
    access: Access,
) -> Value {
    let narrow = narrow(access);
    let value = b.ins().load(narrow, guest(), address, distance);
    match access.signed {
        _ if narrow == int => value,
        true => b.ins().sextend(int, value),
        false => b.ins().uextend(int, value),
    }
}

/// Stores a word to an address of the host and a distance from there.
pub(super) fn store(
    b: &mut FunctionBuilder<'_>,
    int: Type,
    (word, address, distance): (Value, Value, i32),
    access: Access,
) {
    let narrow = narrow(access);
    let word = if narrow == int { word } else { b.ins().ireduce(narrow, word) };
    b.ins().store(guest(), word, address, distance);
}

/// Loads a word from a guest address of 8 bytes that need not be aligned: the bytes from there to the next one that is, which
/// are in memory, zero-extended.
pub(super) fn load_odd(
    b: &mut FunctionBuilder<'_>,
    int: Type,
    (memory, address): (Value, Value),
) -> Value {
    let skipped = b.ins().band_imm_u(address, i64::from(int.bytes()) - 1);
    let start = b.ins().isub(address, skipped);
    let host = b.ins().iadd(memory, start);
    let word = b.ins().load(int, guest(), host, 0);
    let bits = b.ins().ishl_imm_u(skipped, 3);
    b.ins().ushr(word, bits)
}

/// Stores a word to such an address: its lowest bytes, to those before the next address that is aligned. Other threads may
/// store to the rest of the word meanwhile.
pub(super) fn store_odd(
    b: &mut FunctionBuilder<'_>,
    int: Type,
    word: Value,
    (memory, address): (Value, Value),
) {
    let low = i64::from(int.bytes()) - 1;
    let host = b.ins().iadd(memory, address);
    let skipped = b.ins().band_imm_u(address, low);
    let [whole, each, done] = [(); 3].map(|()| b.create_block());
    let rest = b.append_block_param(each, int);
    let place = b.append_block_param(each, types::I64);
    b.ins().brif(skipped, each, &[word.into(), host.into()], whole, &[]);
    b.seal_block(whole);
    b.switch_to_block(whole);
    b.ins().store(guest(), word, host, 0);
    b.ins().jump(done, &[]);
    b.switch_to_block(each);
    b.ins().istore8(guest(), rest, place, 0);
    let next = b.ins().iadd_imm_s(place, 1);
    let more = b.ins().ushr_imm_u(rest, 8);
    // Memory is aligned to words in the host, too.
    let is_inside = b.ins().band_imm_u(next, low);
    b.ins().brif(is_inside, each, &[more.into(), next.into()], done, &[]);
    b.seal_block(each);
    b.seal_block(done);
    b.switch_to_block(done);
}

/// Whether an access at an address is above the last one that is inside of memory, or misaligned though it must not be.
pub(super) fn is_beyond(
    b: &mut FunctionBuilder<'_>,
    address: Value,
    last: u64,
    access: Access,
) -> Value {
    let int = b.func.dfg.value_type(address);
    // Low bits that must not be set become the highest ones: then the word is above all that are inside.
    let low = if access.aligned { access.bytes.trailing_zeros() } else { 0 };
    let turned = if low == 0 { address } else { b.ins().rotr_imm_u(address, i64::from(low)) };
    let last = match int {
        types::I32 => i64::from((last >> low) as i32),
        _ => (last >> low).cast_signed(),
    };
    let last = b.ins().iconst(int, last);
    b.ins().icmp(IntCC::UnsignedGreaterThan, turned, last)
}

/// What an access moves.
pub(super) fn narrow(access: Access) -> Type {
    match access.bytes {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}

/// A vector of words, one for each of its lanes or for the first ones.
pub(super) fn vector_of(b: &mut FunctionBuilder<'_>, ty: Type, words: &[Value]) -> Value {
    let mut vector = b.ins().scalar_to_vector(ty, words[0]);
    for (i, &word) in words.iter().enumerate().skip(1) {
        vector = b.ins().insertlane(vector, word, i as u8);
    }
    vector
}

/// A vector whose lane i is `word(i)`.
pub(super) fn vector_constant(
    b: &mut FunctionBuilder<'_>,
    ty: Type,
    word: impl Fn(usize) -> u64,
) -> Value {
    let lanes = ty.lane_count() as usize;
    let bytes = VECTOR_BYTES / lanes;
    let words = (0..lanes).flat_map(|i| word(i).to_le_bytes()[..bytes].to_vec());
    let data = ConstantData::from(words.collect::<Vec<u8>>());
    let constant = b.func.dfg.constants.insert(data);
    b.ins().vconst(ty, constant)
}

/// All ones or zero for each lane, by its bit.
pub(super) fn expand(b: &mut FunctionBuilder<'_>, shape: Shape, bits: Value) -> Vec<Value> {
    let (ty, per) = (shape.int_vector(), shape.per_vector());
    let width = usize::from(shape.word.bits());
    let mut vectors = Vec::new();
    let mut word = None;
    for k in 0..shape.vectors() {
        let first = k * per;
        if first.is_multiple_of(width) {
            let shifted = b.ins().ushr_imm_u(bits, first as i64);
            let scalar = match shape.bytes() {
                4 => b.ins().ireduce(types::I32, shifted),
                _ => shifted,
            };
            word = Some(b.ins().splat(ty, scalar));
        }
        let Some(word) = word else { continue };
        let bit = vector_constant(b, ty, |i| 1 << ((first + i) % width));
        let masked = b.ins().band(word, bit);
        vectors.push(b.ins().icmp(IntCC::Equal, masked, bit));
    }
    vectors
}

/// A loop over the lanes whose bits are set, lowest first, while its body is emitted.
pub(super) struct LaneLoop {
    head: Block,
    after: Block,
    left: Value,
    /// The number of the lane.
    pub(super) lane: Value,
}

impl LaneLoop {
    /// Goes on in the loop's body.
    pub(super) fn begin(b: &mut FunctionBuilder<'_>, bits: Value) -> LaneLoop {
        let (head, body, after) = (b.create_block(), b.create_block(), b.create_block());
        let left = b.append_block_param(head, types::I64);
        b.ins().jump(head, &[bits.into()]);
        b.switch_to_block(head);
        let none = b.ins().icmp_imm_u(IntCC::Equal, left, 0);
        b.ins().brif(none, after, &[], body, &[]);
        b.seal_block(body);
        b.switch_to_block(body);
        let lane = b.ins().ctz(left);
        LaneLoop { head, after, left, lane }
    }

    /// Goes on behind the loop.
    pub(super) fn end(self, b: &mut FunctionBuilder<'_>) {
        let LaneLoop { head, after, left, .. } = self;
        let less = b.ins().iadd_imm_s(left, -1);
        let rest = b.ins().band(left, less);
        b.ins().jump(head, &[rest.into()]);
        b.seal_block(head);
        b.seal_block(after);
        b.switch_to_block(after);
    }
}
