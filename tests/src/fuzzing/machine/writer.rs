//! Code made of statements.
//!
//! Registers: `%r0` the lane, `%r1` to `%r3` scratch, `%r4` to `%r9` values, `%r10` and `%r11` loop
//! counters, `%r12` the lane's window, `%r13` the lane's column in the warp's rows, `%r14` the warp,
//! `%r15` links. Predicates: `@p0` to `@p3` values, `@p4` to `@p7` steer.

use arbitrary::{Result, Unstructured};
use harp_isa::{ArchId, Gpr, Instruction, Layout, Op, Opcode, Operand, OperandKind, Pred, encode};

use super::program::{Kind, may_make_nan};

/// Words that nobody writes.
pub(super) const CONSTANTS: i64 = 0x4000;
/// Words for atomic operations of all warps, one an operation.
const SHARED: i64 = 0x4400;
/// A window of [`WINDOW`] bytes a lane.
const WINDOWS: i64 = 0x4800;
const WINDOW: i64 = 64;
/// Rows of a word a lane, [`ROWS`] a warp.
const TABLES: i64 = 0xb000;
const ROWS: i64 = 2;
/// The most warps of a core.
pub(super) const MAX_WARPS: u8 = 3;
const MAX_LANES: i64 = 64;

fn r(index: u8) -> Gpr {
    Gpr::new(index)
}

fn p(index: u8) -> Pred {
    Pred::new(index)
}

/// A register with a value.
fn value(u: &mut Unstructured<'_>) -> Result<Gpr> {
    Ok(r(u.int_in_range(4..=9)?))
}

/// A predicate with a value.
fn flag(u: &mut Unstructured<'_>) -> Result<Pred> {
    Ok(p(u.int_in_range(0..=3)?))
}

/// A place in the code, by the number of the instruction.
type Place = usize;

/// Code in the making. An instruction's size does not depend on its immediate, so jumps are filled in
/// when their target is known.
pub(super) struct Writer {
    arch: ArchId,
    layout: Layout,
    code: Vec<Instruction>,
    /// Statements that may still be made.
    left: u32,
    kind: Kind,
}

impl Writer {
    pub(super) fn new(arch: ArchId, kind: Kind) -> Writer {
        Writer { arch, layout: Layout::new(arch), code: Vec::new(), left: 40, kind }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for instruction in &self.code {
            encode(instruction, self.arch, &mut bytes).expect("it is made for the machine");
        }
        bytes
    }

    /// The address of an instruction.
    fn address(&self, place: Place) -> i64 {
        let sizes = self.code[..place]
            .iter()
            .map(|instruction| self.layout.size(instruction.op.opcode()) as i64);
        sizes.sum()
    }

    fn here(&self) -> Place {
        self.code.len()
    }

    fn emit(&mut self, op: Op) -> Place {
        self.code.push(op.into());
        self.here() - 1
    }

    fn emit_on(&mut self, guard: Pred, op: Op) -> Place {
        self.code.push(Instruction::new(op).guarded_by(guard));
        self.here() - 1
    }

    /// Lets the jump at `from` go to `to`.
    fn connect(&mut self, from: Place, to: Place) {
        let distance = self.address(to) - self.address(from + 1);
        match &mut self.code[from].op {
            Op::Jmpi { rel } | Op::Jali { rel, .. } | Op::Jalis { rel, .. } => *rel = distance,
            other => unreachable!("{other:?} is no relative jump"),
        }
    }

    /// Lets the `ldi` at `from` load the address of `to`.
    fn connect_address(&mut self, from: Place, to: Place) {
        let address = self.address(to);
        match &mut self.code[from].op {
            Op::Ldi { imm, .. } => *imm = address,
            other => unreachable!("{other:?} loads no address"),
        }
    }

    /// Any instruction of the machine.
    fn any(&self, u: &mut Unstructured<'_>, wanted: impl Fn(Opcode) -> bool) -> Result<Op> {
        let opcodes: Vec<_> = Opcode::ALL
            .iter()
            .copied()
            .filter(|&opcode| self.layout.has(opcode) && wanted(opcode))
            .collect();
        let opcode = *u.choose(&opcodes)?;
        let range = self.layout.immediate_range(opcode);
        let mut operands = Vec::new();
        for operand in opcode.operands() {
            operands.push(match operand.kind {
                OperandKind::Gpr(_) => Operand::Gpr(value(u)?),
                OperandKind::Pred(_) => Operand::Pred(flag(u)?),
                OperandKind::Imm | OperandKind::Rel => {
                    let near = *range.start().max(&-40)..=*range.end().min(&40);
                    let limits = if u.ratio(3, 4)? { near } else { range.clone() };
                    Operand::Imm(u.int_in_range(limits)?)
                }
            });
        }
        Ok(Op::from_operands(opcode, &operands).expect("operands of the opcode's kinds"))
    }

    /// Replaces some instructions, or their bytes, by any.
    pub(super) fn spoil(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        for _ in 0..u.int_in_range(1..=6)? {
            let place = u.choose_index(self.code.len())?;
            let op = self.any(u, |_| true)?;
            let guard = if u.ratio(1, 3)? { Some(flag(u)?) } else { None };
            self.code[place] = Instruction { guard, op };
        }
        Ok(())
    }

    /// The whole program: boot code, handler, statements.
    pub(super) fn program(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let handler_address = self.emit(Op::Ldi { dst: r(1), imm: 0 });
        if u.ratio(1, 2)? {
            self.emit(Op::Di {});
        }
        if u.ratio(7, 8)? {
            self.emit(Op::Skep { entry: r(1) });
        }
        let spawned = u.int_in_range(1..=MAX_WARPS)?;
        let start = self.emit(Op::Ldi { dst: r(1), imm: 0 });
        for _ in 1..spawned {
            self.emit(Op::Wspawn { dst: r(3), pc: r(1), src: r(1) });
        }
        let to_start = self.emit(Op::Jmpi { rel: 0 });
        let handler = self.handler();
        self.connect_address(handler_address, handler);
        let entry = self.here();
        self.connect_address(start, entry);
        self.connect(to_start, entry);
        self.enter();
        for _ in 0..u.int_in_range(2..=12)? {
            self.statement(u, 0)?;
            if u.ratio(1, 6)? {
                self.barrier(u, spawned)?;
            }
        }
        self.emit(Op::Halt {});
        assert!(self.address(self.here()) < CONSTANTS, "code runs into data");
        Ok(())
    }

    /// Returns, but for a divergent branch, which would come again.
    fn handler(&mut self) -> Place {
        let handler = self.here();
        let console = i64::from(self.arch.word().bits()) - 1;
        self.emit(Op::Subi { dst: r(2), src: r(0), imm: 4 });
        self.emit(Op::Iszero { dst: p(5), src: r(2) });
        self.emit(Op::Subi { dst: r(2), src: r(0), imm: 8 });
        self.emit(Op::Iszero { dst: p(6), src: r(2) });
        self.emit(Op::Tid { dst: r(3) });
        self.emit(Op::Iszero { dst: p(7), src: r(3) });
        self.emit(Op::Andp { dst: p(5), a: p(5), b: p(7) });
        self.emit(Op::Andp { dst: p(6), a: p(6), b: p(7) });
        self.emit_on(p(5), Op::Halt {});
        self.emit(Op::Ldi { dst: r(2), imm: 1 });
        self.emit(Op::Shli { dst: r(2), src: r(2), imm: console });
        self.emit_on(p(6), Op::Ld { dst: r(3), base: r(2), offset: 0 });
        self.emit(Op::Reti {});
        handler
    }

    /// All lanes, with their numbers and addresses.
    fn enter(&mut self) {
        let lanes = i64::from(self.arch.lanes());
        let width = i64::from(self.arch.word().bytes());
        self.emit(Op::Ldi { dst: r(1), imm: lanes });
        let all = self.emit(Op::Jalis { link: r(15), lanes: r(1), rel: 0 });
        self.connect(all, all + 1);
        self.emit(Op::Tid { dst: r(0) });
        self.emit(Op::Csr { dst: r(14), index: 1 });
        self.emit(Op::Csr { dst: r(2), index: 2 });
        self.emit(Op::Muli { dst: r(2), src: r(2), imm: MAX_WARPS.into() });
        self.emit(Op::Add { dst: r(2), a: r(2), b: r(14) });
        self.emit(Op::Muli { dst: r(2), src: r(2), imm: MAX_LANES });
        self.emit(Op::Ldi { dst: r(12), imm: WINDOWS });
        self.emit(Op::Add { dst: r(3), a: r(2), b: r(0) });
        self.emit(Op::Muli { dst: r(3), src: r(3), imm: WINDOW });
        self.emit(Op::Add { dst: r(12), a: r(12), b: r(3) });
        self.emit(Op::Ldi { dst: r(13), imm: TABLES });
        self.emit(Op::Muli { dst: r(3), src: r(2), imm: ROWS * width });
        self.emit(Op::Add { dst: r(13), a: r(13), b: r(3) });
        self.emit(Op::Muli { dst: r(3), src: r(0), imm: width });
        self.emit(Op::Add { dst: r(13), a: r(13), b: r(3) });
        for reg in 4..=9 {
            let factor = i64::from(reg) * 3 - 20;
            self.emit(Op::Muli { dst: r(reg), src: r(0), imm: factor });
            self.emit(Op::Addi { dst: r(reg), src: r(reg), imm: i64::from(reg) });
        }
        for pred in 0..=3 {
            self.emit(Op::Andi { dst: r(1), src: r(0), imm: 1 << pred });
            self.emit(Op::Rtop { dst: p(pred), src: r(1) });
        }
    }

    fn barrier(&mut self, u: &mut Unstructured<'_>, warps: u8) -> Result<()> {
        // Now and then one that is never complete.
        let warps = if u.ratio(1, 16)? { warps + 1 } else { warps };
        self.emit(Op::Ldi { dst: r(1), imm: u.int_in_range(0..=3)? });
        self.emit(Op::Ldi { dst: r(2), imm: warps.into() });
        self.emit(Op::Bar { id: r(1), warps: r(2) });
        Ok(())
    }

    fn block(&mut self, u: &mut Unstructured<'_>, depth: u32) -> Result<()> {
        for _ in 0..u.int_in_range(0..=3)? {
            self.statement(u, depth + 1)?;
        }
        Ok(())
    }

    fn statement(&mut self, u: &mut Unstructured<'_>, depth: u32) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        match u.int_in_range(0..=if depth < 3 { 17 } else { 13 })? {
            0..=3 => self.compute(u)?,
            4 => self.window(u)?,
            5 => self.row(u)?,
            6 => self.constant(u)?,
            7 => self.shared(u)?,
            8 => self.own_atomic(u)?,
            9 => self.vote(u)?,
            10 => self.print(u)?,
            11 => self.fault(u)?,
            12 => self.call(u)?,
            13 => self.lanes(u, depth)?,
            14 | 15 => self.branch(u, depth)?,
            16 => self.counted_loop(u, depth)?,
            _ => self.divergent_loop(u, depth)?,
        }
        Ok(())
    }

    /// Whatever computes in registers, with a guard now and then.
    fn compute(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let without_nans = u.ratio(7, 8)?;
        let op = self.any(u, |opcode| {
            let first = opcode.operands().first().map(|operand| operand.kind);
            let has_result = match first {
                Some(OperandKind::Gpr(role)) => role != harp_isa::Role::Use,
                Some(OperandKind::Pred(_)) => true,
                _ => false,
            };
            let name = opcode.mnemonic();
            let other = name.starts_with("j")
                || name.starts_with("wspawn")
                || name.starts_with("amo")
                || name.starts_with("cas")
                || name.starts_with("ld") && name != "ldi";
            // Divisions by zero are faults.
            let divides = name.starts_with("div") || name.starts_with("mod");
            let is_nan_maker = without_nans && may_make_nan(opcode);
            has_result && !other && !divides && !is_nan_maker
        })?;
        let op = match op {
            Op::Csr { dst, index } => Op::Csr { dst, index: index.rem_euclid(6) },
            Op::Ballot { dst, src, index } => Op::Ballot { dst, src, index: index & 1 },
            other => other,
        };
        self.maybe_on(u, op)
    }

    fn maybe_on(&mut self, u: &mut Unstructured<'_>, op: Op) -> Result<()> {
        if u.ratio(1, 3)? {
            self.emit_on(flag(u)?, op);
        } else {
            self.emit(op);
        }
        Ok(())
    }

    /// A load or a store in the lane's own window.
    fn window(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let (base, offset) = (r(12), u.int_in_range(0..=WINDOW - 8)?);
        let reg = value(u)?;
        let op = match u.int_in_range(0..=12)? {
            0 => Op::Ldb { dst: reg, base, offset },
            1 => Op::Ldbs { dst: reg, base, offset },
            2 => Op::Ldh { dst: reg, base, offset },
            3 => Op::Ldhs { dst: reg, base, offset },
            4 => Op::Ldw { dst: reg, base, offset },
            5 => Op::Ldws { dst: reg, base, offset },
            6 => Op::Stb { value: reg, base, offset },
            7 => Op::Sth { value: reg, base, offset },
            8 => Op::Stw { value: reg, base, offset },
            9 => Op::Ld { dst: reg, base, offset },
            10 => Op::St { value: reg, base, offset },
            11 => Op::Ld { dst: reg, base, offset: offset & !7 },
            _ => Op::St { value: reg, base, offset: offset & !7 },
        };
        self.maybe_on(u, op)
    }

    /// A load or a store of a row, word by word.
    fn row(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let width = i64::from(self.arch.word().bytes());
        let offset = u.int_in_range(0..=ROWS - 1)? * MAX_LANES * width;
        let (reg, base) = (value(u)?, r(13));
        let op = if u.arbitrary()? {
            Op::Ld { dst: reg, base, offset }
        } else {
            Op::St { value: reg, base, offset }
        };
        self.maybe_on(u, op)
    }

    /// A load of a constant, from one address or from many.
    fn constant(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.emit(Op::Ldi { dst: r(1), imm: CONSTANTS });
        if u.arbitrary()? {
            self.emit(Op::Andi { dst: r(2), src: value(u)?, imm: 0xf8 });
            self.emit(Op::Add { dst: r(1), a: r(1), b: r(2) });
        }
        let load = Op::Ld { dst: value(u)?, base: r(1), offset: u.int_in_range(0..=16)? };
        self.maybe_on(u, load)
    }

    /// An atomic operation whose old value is forgotten, on a word that only such operations touch.
    fn shared(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let word = u.int_in_range(0..=7_i64)?;
        self.emit(Op::Ldi { dst: r(1), imm: SHARED + 8 * word });
        if self.kind == Kind::Wild && u.ratio(2, 3)? {
            // Warps that race.
            let load = Op::Ld { dst: value(u)?, base: r(1), offset: 0 };
            let store = Op::St { value: value(u)?, base: r(1), offset: 0 };
            let op = if u.arbitrary()? { load } else { store };
            return self.maybe_on(u, op);
        }
        let (dst, addr, value) = (r(2), r(1), value(u)?);
        let op = match word {
            0 => Op::AmoAdd { dst, addr, value },
            1 => Op::AmoAnd { dst, addr, value },
            2 => Op::AmoOr { dst, addr, value },
            3 => Op::AmoXor { dst, addr, value },
            4 => Op::AmoMin { dst, addr, value },
            5 => Op::AmoMax { dst, addr, value },
            6 => Op::AmoMinu { dst, addr, value },
            _ => Op::AmoMaxu { dst, addr, value },
        };
        self.maybe_on(u, op)?;
        self.emit(Op::Ldi { dst: r(2), imm: 0 });
        Ok(())
    }

    /// An atomic operation in the lane's window.
    fn own_atomic(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let op = self.any(u, |opcode| {
            opcode.mnemonic().starts_with("amo") || opcode.mnemonic().starts_with("cas")
        })?;
        let offset = u.int_in_range(0..=WINDOW / 8 - 1)? * 8;
        self.emit(Op::Addi { dst: r(1), src: r(12), imm: offset });
        let mut operands = Vec::new();
        op.for_each_operand(|operand| operands.push(operand));
        operands[1] = Operand::Gpr(r(1));
        let op = Op::from_operands(op.opcode(), &operands).expect("the same kinds");
        self.maybe_on(u, op)
    }

    fn vote(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let op = match u.int_in_range(0..=3)? {
            0 => Op::Anyp { dst: flag(u)?, src: flag(u)? },
            1 => Op::Allp { dst: flag(u)?, src: flag(u)? },
            2 => Op::Ballot { dst: value(u)?, src: flag(u)?, index: u.int_in_range(0..=1)? },
            _ => {
                self.emit(Op::Andi { dst: r(1), src: value(u)?, imm: 63 });
                Op::Shfl { dst: value(u)?, value: value(u)?, lane: r(1) }
            }
        };
        self.maybe_on(u, op)
    }

    fn print(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let top = i64::from(self.arch.word().bits()) - 1;
        self.emit(Op::Ldi { dst: r(1), imm: 1 });
        self.emit(Op::Shli { dst: r(1), src: r(1), imm: top });
        let value = value(u)?;
        self.maybe_on(u, Op::St { value, base: r(1), offset: 0 })
    }

    /// Something that may interrupt or trap.
    fn fault(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if self.kind == Kind::Wild && u.ratio(1, 2)? {
            return self.change_code(u);
        }
        if u.ratio(2, 3)? {
            return self.compute(u);
        }
        match u.int_in_range(0..=6)? {
            0 => {
                self.emit(Op::Trap {});
            }
            1 | 2 => {
                let op = self.any(u, |opcode| {
                    let name = opcode.mnemonic();
                    name.starts_with("div") || name.starts_with("mod")
                })?;
                self.maybe_on(u, op)?;
            }
            3 => {
                let lane = value(u)?;
                self.emit(Op::Andi { dst: r(1), src: lane, imm: 1 });
                self.emit(Op::Clone { lane: r(1) });
            }
            4 => {
                let op = *u.choose(&[
                    Op::Ei {},
                    Op::Di {},
                    Op::Tlbflush {},
                    Op::Tlbrm { virt: r(4) },
                    Op::Tlbadd { virt: r(4), phys: r(5), flags: r(6) },
                ])?;
                self.maybe_on(u, op)?;
            }
            5 => {
                let target = self.emit(Op::Ldi { dst: r(1), imm: 0 });
                self.emit(Op::Jmpru { target: r(1) });
                self.connect_address(target, self.here());
            }
            _ => {
                let jump = self.emit_on(flag(u)?, Op::Jmpi { rel: 0 });
                self.connect(jump, jump + 1);
            }
        }
        Ok(())
    }

    /// Copies a word of code to a little further on, or to anywhere.
    fn change_code(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let width = i64::from(self.arch.word().bytes());
        let source = u.choose_index(self.here())?;
        self.emit(Op::Ldi { dst: r(1), imm: self.address(source) });
        self.emit(Op::Ld { dst: r(2), base: r(1), offset: 0 });
        let target = self.emit(Op::Ldi { dst: r(3), imm: 0 });
        let offset = if u.ratio(3, 4)? {
            u.int_in_range(0..=4)? * width
        } else {
            -u.int_in_range(0..=self.address(target))?
        };
        self.maybe_on(u, Op::St { value: r(2), base: r(3), offset: 0 })?;
        let address = self.address(self.here()) + offset;
        self.code[target].op = Op::Ldi { dst: r(3), imm: address };
        Ok(())
    }

    /// A function that is called where it stands.
    fn call(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let by_register = u.arbitrary()?;
        let target = self.emit(Op::Ldi { dst: r(1), imm: 0 });
        let call = if by_register {
            self.emit(Op::Jalr { link: r(15), target: r(1) })
        } else {
            self.emit(Op::Jali { link: r(15), rel: 0 })
        };
        let skip = self.emit(Op::Jmpi { rel: 0 });
        let function = self.here();
        self.compute(u)?;
        self.window(u)?;
        self.emit(Op::Jmpr { target: r(15) });
        self.connect_address(target, function);
        if !by_register {
            self.connect(call, function);
        }
        self.connect(skip, self.here());
        Ok(())
    }

    /// Another number of lanes, where no split waits.
    fn lanes(&mut self, u: &mut Unstructured<'_>, depth: u32) -> Result<()> {
        if depth > 0 {
            return self.compute(u);
        }
        let lanes = i64::from(self.arch.lanes());
        let count = u.int_in_range(1..=lanes)?;
        self.emit(Op::Ldi { dst: r(1), imm: count });
        if u.arbitrary()? {
            let jump = self.emit(Op::Jalis { link: r(15), lanes: r(1), rel: 0 });
            self.connect(jump, jump + 1);
        } else {
            let target = self.emit(Op::Ldi { dst: r(2), imm: 0 });
            let op = *u.choose(&[
                Op::Jalrs { link: r(15), lanes: r(1), target: r(2) },
                Op::Jmprt { target: r(2) },
            ])?;
            self.emit(op);
            self.connect_address(target, self.here());
        }
        Ok(())
    }

    /// Two sides under a split.
    fn branch(&mut self, u: &mut Unstructured<'_>, depth: u32) -> Result<()> {
        let condition = flag(u)?;
        // The sides may change the condition; the branch needs it as it is at the split.
        let kept = p(4 + u8::try_from(depth).expect("not deep"));
        self.emit(Op::Orp { dst: kept, a: condition, b: condition });
        self.emit_on(kept, Op::Split {});
        let branch = self.emit_on(kept, Op::Jmpi { rel: 0 });
        self.block(u, depth)?;
        let to_end = self.emit(Op::Jmpi { rel: 0 });
        let other = self.here();
        self.connect(branch, other);
        self.block(u, depth)?;
        let end = self.here();
        self.connect(to_end, end);
        self.emit(Op::Join {});
        Ok(())
    }

    /// A loop that all active lanes leave together.
    fn counted_loop(&mut self, u: &mut Unstructured<'_>, depth: u32) -> Result<()> {
        if depth > 1 {
            return self.compute(u);
        }
        let counter = r(10 + u8::try_from(depth).expect("not deep"));
        let again = p(7);
        self.emit(Op::Ldi { dst: counter, imm: u.int_in_range(1..=5)? });
        let top = self.here();
        self.block(u, depth)?;
        self.emit(Op::Subi { dst: counter, src: counter, imm: 1 });
        self.emit(Op::Rtop { dst: again, src: counter });
        let back = self.emit_on(again, Op::Jmpi { rel: 0 });
        self.connect(back, top);
        Ok(())
    }

    /// A loop that lanes leave one after the other: those that are done wait under a split.
    fn divergent_loop(&mut self, u: &mut Unstructured<'_>, depth: u32) -> Result<()> {
        if depth > 1 {
            return self.compute(u);
        }
        let counter = r(10 + u8::try_from(depth).expect("not deep"));
        let live = p(4 + u8::try_from(depth).expect("not deep"));
        self.emit(Op::Andi { dst: counter, src: value(u)?, imm: 3 });
        let top = self.emit(Op::Rtop { dst: live, src: counter });
        self.emit(Op::Anyp { dst: p(7), src: live });
        self.emit(Op::Notp { dst: p(7), src: p(7) });
        let leave = self.emit_on(p(7), Op::Jmpi { rel: 0 });
        self.emit_on(live, Op::Split {});
        self.emit(Op::Notp { dst: p(7), src: live });
        let skip = self.emit_on(p(7), Op::Jmpi { rel: 0 });
        self.block(u, depth)?;
        self.emit(Op::Subi { dst: counter, src: counter, imm: 1 });
        let join = self.emit(Op::Join {});
        self.connect(skip, join);
        let back = self.emit(Op::Jmpi { rel: 0 });
        self.connect(back, top);
        self.connect(leave, self.here());
        Ok(())
    }
}
