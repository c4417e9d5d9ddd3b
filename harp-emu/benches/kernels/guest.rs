//! Kernels as guest programs.

use harp_isa::{ArchId, Gpr, Instruction, Op, Opcode, Operand, Pred};

use super::{CORE_BYTES, Case, DATA, Kernel, Mask, START, WORDS};

const LANE: Gpr = Gpr::new(8);
const COUNTER: Gpr = Gpr::new(9);
const WRAP: Gpr = Gpr::new(10);
/// The arrays' addresses for the lane, and those of the current words.
const BASE: [Gpr; 2] = [Gpr::new(11), Gpr::new(12)];
const AT: [Gpr; 2] = [Gpr::new(13), Gpr::new(14)];
const OFFSET: Gpr = Gpr::new(15);

/// The register of that letter.
fn named(name: &str) -> Gpr {
    Gpr::new(name.as_bytes()[0] - b'a')
}

/// Makes a list of instructions of rows.
macro_rules! ops {
    ($($name:ident $d:ident, $a:ident $(, $b:ident)? $(, # $imm:literal)?;)*) => {
        vec![$({
            let mut operands = vec![
                Operand::Gpr(named(stringify!($d))),
                Operand::Gpr(named(stringify!($a))),
            ];
            $(operands.push(Operand::Gpr(named(stringify!($b))));)?
            $(operands.push(Operand::Imm($imm));)?
            let opcode = Opcode::from_mnemonic(stringify!($name)).expect("an opcode");
            Op::from_operands(opcode, &operands).expect("its operands")
        }),*]
    };
}

fn body(case: &Case) -> Vec<Op> {
    let (a, c) = (named("a"), named("c"));
    let [x, y] = AT;
    match case.kernel {
        Kernel::Alu => alu!(ops, a b c d e f g h),
        Kernel::UnitStride => {
            let mut body = vec![
                Op::Ld { dst: a, base: x, offset: 0 },
                Op::Ld { dst: named("b"), base: y, offset: 0 },
            ];
            body.extend(unit_stride!(ops, a b c d e f g h));
            body.extend([
                Op::St { value: a, base: y, offset: 0 },
                Op::Addi { dst: OFFSET, src: OFFSET, imm: 4 * case.lanes as i64 },
                Op::And { dst: OFFSET, a: OFFSET, b: WRAP },
                Op::Add { dst: x, a: BASE[0], b: OFFSET },
                Op::Add { dst: y, a: BASE[1], b: OFFSET },
            ]);
            body
        }
        Kernel::Scattered => {
            let mut body = scattered_index!(ops, a b c d e f g h);
            body.extend([
                Op::And { dst: c, a: c, b: WRAP },
                Op::Shli { dst: x, src: c, imm: 2 },
                Op::Ld { dst: a, base: x, offset: DATA as i64 },
            ]);
            body.extend(scattered!(ops, a b c d e f g h));
            body.push(Op::St { value: a, base: x, offset: DATA as i64 });
            body
        }
    }
}

/// The kernel's machine code, to be put at address 0.
pub(crate) fn program(case: &Case, arch: ArchId) -> Vec<u8> {
    let (works, rests, again) = (Pred::new(0), Pred::new(1), Pred::new(2));
    let [x, y] = BASE;
    let wrap = match case.kernel {
        Kernel::Scattered => WORDS,
        _ => 4 * WORDS,
    };
    let mut code: Vec<Instruction> = [
        Op::Ldi { dst: LANE, imm: case.lanes as i64 },
        Op::Jalis { link: COUNTER, lanes: LANE, rel: 0 },
        Op::Tid { dst: LANE },
        Op::Shli { dst: x, src: LANE, imm: 2 },
        Op::Addi { dst: x, src: x, imm: DATA as i64 },
        // Each core has arrays of its own.
        Op::Csr { dst: OFFSET, index: 2 },
        Op::Shli { dst: OFFSET, src: OFFSET, imm: CORE_BYTES.trailing_zeros().into() },
        Op::Add { dst: x, a: x, b: OFFSET },
        Op::Ldi { dst: WRAP, imm: 1 },
        Op::Shli { dst: WRAP, src: WRAP, imm: wrap.trailing_zeros().into() },
        Op::Ldi { dst: y, imm: 1 },
        Op::Shli { dst: y, src: y, imm: 2 + i64::from(WORDS.trailing_zeros()) },
        Op::Add { dst: y, a: y, b: x },
        Op::Subi { dst: WRAP, src: WRAP, imm: 1 },
        Op::Ori { dst: AT[0], src: x, imm: 0 },
        Op::Ori { dst: AT[1], src: y, imm: 0 },
        Op::Ldi { dst: OFFSET, imm: 0 },
    ]
    .map(Instruction::new)
    .into();
    for (number, (factor, constant)) in START.into_iter().enumerate() {
        let dst = Gpr::new(number as u8);
        code.push(Op::Muli { dst, src: LANE, imm: factor.into() }.into());
        code.push(Op::Addi { dst, src: dst, imm: constant.into() }.into());
    }
    let counter = [case.iterations >> 12, case.iterations & 0xfff].map(i64::from);
    code.extend(
        [
            Op::Ldi { dst: COUNTER, imm: counter[0] },
            Op::Shli { dst: COUNTER, src: COUNTER, imm: 12 },
            Op::Addi { dst: COUNTER, src: COUNTER, imm: counter[1] },
            // Lanes that rest have both low bits of their number set.
            Op::Andi { dst: LANE, src: LANE, imm: 3 },
            Op::Xori { dst: LANE, src: LANE, imm: 3 },
            Op::Rtop { dst: works, src: LANE },
            Op::Notp { dst: rests, src: works },
        ]
        .map(Instruction::new),
    );
    let body = body(case);
    let jump = |instructions: usize| 4 * instructions as i64;
    if case.mask == Mask::Partial {
        code.push(Instruction::new(Op::Split {}).guarded_by(works));
        code.push(Instruction::new(Op::Jmpi { rel: jump(body.len() + 3) }).guarded_by(rests));
    }
    let length = body.len();
    code.extend(body.into_iter().map(Instruction::new));
    code.push(Op::Subi { dst: COUNTER, src: COUNTER, imm: 1 }.into());
    code.push(Op::Rtop { dst: again, src: COUNTER }.into());
    code.push(Instruction::new(Op::Jmpi { rel: -jump(length + 3) }).guarded_by(again));
    if case.mask == Mask::Partial {
        code.push(Op::Join {}.into());
    }
    code.push(Op::Halt {}.into());
    let mut bytes = Vec::new();
    for instruction in code {
        harp_isa::encode(&instruction, arch, &mut bytes).expect("the machine has the instruction");
    }
    bytes
}
