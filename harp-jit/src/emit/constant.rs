//! Constants of any size, built from immediates of few bits.

use harp_isa::{Gpr, Layout, Op, Opcode, WordSize};
use smallvec::{SmallVec, smallvec};

/// The instructions that make a constant: mostly one or two.
pub(super) type Ops = SmallVec<[Op; 4]>;

/// Instructions that load `value`, sign-extended from the word, into `dst`, which they do not read before
/// they have written it.
///
/// They are one `ldi` if it suffices, or `ldi` and `shli` for a short number followed by zero bits. Otherwise
/// the number is built from the top, piece by piece, with `shli` and `ori` of an immediate that is not
/// negative.
pub(super) fn sequence(dst: Gpr, value: i64, layout: Layout, word: WordSize) -> Ops {
    let ldi = |imm| Op::Ldi { dst, imm };
    if layout.fits(Opcode::Ldi, value) {
        return smallvec![ldi(value)];
    }
    let zeros = value.trailing_zeros();
    if layout.fits(Opcode::Ldi, value >> zeros) {
        return smallvec![ldi(value >> zeros), shift_left(dst, zeros)];
    }
    // `ori` must not have a negative immediate: use one bit less than its field.
    let piece = u32::from(layout.immediate_bits(Opcode::Ori)) - 1;
    let piece = piece.min(u32::from(word.bits()) - 1);
    let mut pieces: SmallVec<[i64; 4]> = SmallVec::new();
    let mut rest = value;
    while !layout.fits(Opcode::Ldi, rest) {
        pieces.push(rest & ((1 << piece) - 1));
        rest >>= piece;
    }
    let mut ops: Ops = smallvec![ldi(rest)];
    let mut pending = 0;
    for imm in pieces.into_iter().rev() {
        pending += piece;
        if imm != 0 {
            ops.push(shift_left(dst, pending));
            ops.push(Op::Ori { dst, src: dst, imm });
            pending = 0;
        }
    }
    if pending != 0 {
        ops.push(shift_left(dst, pending));
    }
    ops
}

fn shift_left(dst: Gpr, count: u32) -> Op {
    Op::Shli { dst, src: dst, imm: count.into() }
}

#[cfg(test)]
mod tests {
    use harp_isa::ArchId;
    use proptest::prelude::*;

    use super::*;

    /// Runs a sequence: returns what it leaves in its register, and checks the immediates.
    fn run(ops: &[Op], layout: Layout, word: WordSize) -> i64 {
        let mut reg = None;
        for op in ops {
            let fits = |opcode, imm| assert!(layout.fits(opcode, imm), "{op:?}");
            reg = Some(match *op {
                Op::Ldi { imm, .. } => {
                    fits(Opcode::Ldi, imm);
                    imm
                }
                Op::Shli { imm, .. } => {
                    fits(Opcode::Shli, imm);
                    assert!(imm < word.bits().into(), "{op:?}");
                    reg.unwrap() << imm
                }
                Op::Ori { imm, .. } => {
                    fits(Opcode::Ori, imm);
                    assert!(imm >= 0, "{op:?}");
                    reg.unwrap() | imm
                }
                _ => panic!("{op:?}"),
            });
        }
        word.sign_extend(reg.unwrap().cast_unsigned())
    }

    proptest! {
        #[test]
        fn a_sequence_makes_its_value(
            value: i64,
            keep in 1..=64u32,
            zeros in 0..64u32,
            arch in prop::sample::select(vec![
                "4w8/8", "4w8/2+x", "4w32/16+x", "4w64/64", "4b16/16", "8w8/8", "8w64/64", "8b32/8",
            ]),
        ) {
            let arch: ArchId = arch.parse().unwrap();
            let value = value >> (64 - keep) << zeros;
            let value = arch.word().sign_extend(value.cast_unsigned());
            let layout = Layout::new(arch);
            let ops = sequence(Gpr::new(0), value, layout, arch.word());
            prop_assert_eq!(run(&ops, layout, arch.word()), value);
        }
    }
}
