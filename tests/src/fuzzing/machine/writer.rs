//! Code made of statements.
//!
//! Registers: `%r0` the lane, `%r1` to `%r3` scratch, `%r4` to `%r9` values, `%r10` and `%r11` loop
//! counters, `%r12` the lane's window, `%r13` the lane's column in the warp's rows, `%r14` the warp,
//! `%r15` links. Predicates: `@p0` to `@p3` values, `@p4` to `@p7` steer.

use arbitrary::{Result, Unstructured};
use harp_isa::{
    ArchId, Gpr, Instruction, Layout, Op, Opcode, OpcodeFlags, Operand, OperandKind, Pred, Role,
    assemble, disassemble, encode,
};

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

/// The number of a register with a value.
fn value(u: &mut Unstructured<'_>) -> Result<u8> {
    u.int_in_range(4..=9)
}

/// That of a predicate with one.
fn flag(u: &mut Unstructured<'_>) -> Result<u8> {
    u.int_in_range(0..=3)
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
        let size = |code: &Instruction| self.layout.size(code.op.opcode()) as i64;
        self.code[..place].iter().map(size).sum()
    }

    fn here(&self) -> Place {
        self.code.len()
    }

    /// Appends what assembly says; the place of the last instruction.
    fn asm(&mut self, text: &str) -> Place {
        let object = assemble(text, self.arch, &[]);
        let object = object.unwrap_or_else(|error| panic!("`{text}`: {error}"));
        let code = disassemble(&object.chunks[0].data, 0, self.arch);
        self.code.extend(code.map(|(_, decoded)| decoded.expect("it was assembled")));
        self.here() - 1
    }

    /// The same for one instruction, with a guard now and then.
    fn maybe(&mut self, u: &mut Unstructured<'_>, text: &str) -> Result<()> {
        if u.ratio(1, 3)? {
            self.asm(&format!("@p{} ? {text}", flag(u)?));
        } else {
            self.asm(text);
        }
        Ok(())
    }

    fn maybe_op(&mut self, u: &mut Unstructured<'_>, op: Op) -> Result<()> {
        let text = Instruction::new(op).display(self.arch).to_string();
        self.maybe(u, &text)
    }

    /// Lets the jump at `from` go to `to`, or the `ldi` there load its address.
    fn connect(&mut self, from: Place, to: Place) {
        let (address, next) = (self.address(to), self.address(from + 1));
        match &mut self.code[from].op {
            Op::Jmpi { rel } | Op::Jali { rel, .. } | Op::Jalis { rel, .. } => {
                *rel = address - next;
            }
            Op::Ldi { imm, .. } => *imm = address,
            other => unreachable!("{other:?} names no place"),
        }
    }

    /// Any instruction of the machine.
    fn any(&self, u: &mut Unstructured<'_>, wanted: impl Fn(Opcode) -> bool) -> Result<Op> {
        let has = |&opcode: &Opcode| self.layout.has(opcode) && wanted(opcode);
        let opcodes: Vec<_> = Opcode::ALL.iter().copied().filter(has).collect();
        let opcode = *u.choose(&opcodes)?;
        let range = self.layout.immediate_range(opcode);
        let mut operands = Vec::new();
        for operand in opcode.operands() {
            operands.push(match operand.kind {
                OperandKind::Gpr(_) => Operand::Gpr(Gpr::new(value(u)?)),
                OperandKind::Pred(_) => Operand::Pred(Pred::new(flag(u)?)),
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
            let guard = if u.ratio(1, 3)? { Some(Pred::new(flag(u)?)) } else { None };
            self.code[place] = Instruction { guard, op };
        }
        Ok(())
    }

    /// The whole program: boot code, handler, statements.
    pub(super) fn program(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let handler_address = self.asm("ldi %r1, #0");
        if u.ratio(1, 2)? {
            self.asm("di");
        }
        if u.ratio(7, 8)? {
            self.asm("skep %r1");
        }
        let spawned = u.int_in_range(1..=MAX_WARPS)?;
        let start = self.asm("ldi %r1, #0");
        for _ in 1..spawned {
            self.asm("wspawn %r3, %r1, %r1");
        }
        let to_start = self.asm("jmpi #0");
        self.connect(handler_address, self.here());
        self.handler();
        self.connect(start, self.here());
        self.connect(to_start, self.here());
        self.enter();
        for _ in 0..u.int_in_range(2..=12)? {
            self.statement(u, 0)?;
            if u.ratio(1, 6)? {
                self.barrier(u, spawned)?;
            }
        }
        self.asm("halt");
        assert!(self.address(self.here()) < CONSTANTS, "code runs into data");
        Ok(())
    }

    /// Returns, but for a divergent branch, which would come again.
    fn handler(&mut self) {
        let console = self.arch.word().bits() - 1;
        self.asm(&format!(
            "subi %r2, %r0, #4 ; iszero @p5, %r2 ; subi %r2, %r0, #8 ; iszero @p6, %r2
             tid %r3 ; iszero @p7, %r3 ; andp @p5, @p5, @p7 ; andp @p6, @p6, @p7 ; @p5 ? halt
             ldi %r2, #1 ; shli %r2, %r2, #{console} ; @p6 ? ld %r3, %r2, #0 ; reti"
        ));
    }

    /// All lanes, with their numbers and addresses.
    fn enter(&mut self) {
        let (lanes, width) = (self.arch.lanes(), i64::from(self.arch.word().bytes()));
        let all = self.asm(&format!("ldi %r1, #{lanes} ; jalis %r15, %r1, #0"));
        self.connect(all, all + 1);
        self.asm(&format!(
            "tid %r0 ; csr %r14, #1 ; csr %r2, #2 ; muli %r2, %r2, #{MAX_WARPS}
             add %r2, %r2, %r14 ; muli %r2, %r2, #{MAX_LANES}
             ldi %r12, #{WINDOWS} ; add %r3, %r2, %r0 ; muli %r3, %r3, #{WINDOW} ; add %r12, %r12, %r3
             ldi %r13, #{TABLES} ; muli %r3, %r2, #{} ; add %r13, %r13, %r3
             muli %r3, %r0, #{width} ; add %r13, %r13, %r3",
            ROWS * width
        ));
        for reg in 4..=9 {
            self.asm(&format!(
                "muli %r{reg}, %r0, #{} ; addi %r{reg}, %r{reg}, #{reg}",
                reg * 3 - 20
            ));
        }
        for pred in 0..=3 {
            self.asm(&format!("andi %r1, %r0, #{} ; rtop @p{pred}, %r1", 1 << pred));
        }
    }

    fn barrier(&mut self, u: &mut Unstructured<'_>, warps: u8) -> Result<()> {
        // Now and then one that is never complete.
        let warps = if u.ratio(1, 16)? { warps + 1 } else { warps };
        let id = u.int_in_range(0..=3_i64)?;
        self.asm(&format!("ldi %r1, #{id} ; ldi %r2, #{warps} ; bar %r1, %r2"));
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
            0..=3 => self.compute(u),
            4 => self.window(u),
            5 => self.row(u),
            6 => self.constant(u),
            7 => self.shared(u),
            8 => self.own_atomic(u),
            9 => self.vote(u),
            10 => self.print(u),
            11 => self.fault(u),
            12 => self.call(u),
            13 if depth == 0 => self.lanes(u),
            14 | 15 => self.branch(u, depth),
            16 if depth < 2 => self.counted_loop(u, depth),
            17 if depth < 2 => self.divergent_loop(u, depth),
            _ => self.compute(u),
        }
    }

    /// Whatever computes in registers, with a guard now and then.
    fn compute(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let without_nans = u.ratio(7, 8)?;
        let op = self.any(u, |opcode| {
            let first = opcode.operands().first().map(|operand| operand.kind);
            let has_result = match first {
                Some(OperandKind::Gpr(role) | OperandKind::Pred(role)) => role != Role::Use,
                _ => false,
            };
            // Divisions by zero are faults.
            let others = OpcodeFlags::CONTROL
                | OpcodeFlags::ONCE_PER_WARP
                | OpcodeFlags::ATOMIC
                | OpcodeFlags::LOAD
                | OpcodeFlags::DIVIDES;
            let is_nan_maker = without_nans && may_make_nan(opcode);
            has_result && !opcode.flags().intersects(others) && !is_nan_maker
        })?;
        let op = match op {
            Op::Csr { dst, index } => Op::Csr { dst, index: index.rem_euclid(6) },
            Op::Ballot { dst, src, index } => Op::Ballot { dst, src, index: index & 1 },
            other => other,
        };
        self.maybe_op(u, op)
    }

    /// A load or a store in the lane's own window.
    fn window(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let (mut offset, reg) = (u.int_in_range(0..=WINDOW - 8)?, value(u)?);
        let names = [
            "ldb", "ldbs", "ldh", "ldhs", "ldw", "ldws", "stb", "sth", "stw", "ld", "st", "ld",
            "st",
        ];
        let kind = u.int_in_range(0..=12)?;
        if kind > 10 {
            offset &= !7;
        }
        self.maybe(u, &format!("{} %r{reg}, %r12, #{offset}", names[kind]))
    }

    /// A load or a store of a row, word by word.
    fn row(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let width = i64::from(self.arch.word().bytes());
        let offset = u.int_in_range(0..=ROWS - 1)? * MAX_LANES * width;
        let (reg, name) = (value(u)?, if u.arbitrary()? { "ld" } else { "st" });
        self.maybe(u, &format!("{name} %r{reg}, %r13, #{offset}"))
    }

    /// A load of a constant, from one address or from many.
    fn constant(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.asm(&format!("ldi %r1, #{CONSTANTS}"));
        if u.arbitrary()? {
            self.asm(&format!("andi %r2, %r{}, #0xf8 ; add %r1, %r1, %r2", value(u)?));
        }
        let (dst, offset) = (value(u)?, u.int_in_range(0..=16_i64)?);
        self.maybe(u, &format!("ld %r{dst}, %r1, #{offset}"))
    }

    /// An atomic operation whose old value is forgotten, on a word that only such operations touch.
    fn shared(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let word = u.int_in_range(0..=7_i64)?;
        self.asm(&format!("ldi %r1, #{}", SHARED + 8 * word));
        if self.kind == Kind::Wild && u.ratio(2, 3)? {
            // Warps that race.
            let (loaded, stored) = (value(u)?, value(u)?);
            let (name, reg) = if u.arbitrary()? { ("ld", loaded) } else { ("st", stored) };
            return self.maybe(u, &format!("{name} %r{reg}, %r1, #0"));
        }
        let names = ["add", "and", "or", "xor", "min", "max", "minu", "maxu"];
        let value = value(u)?;
        self.maybe(u, &format!("amo{} %r2, %r1, %r{value}", names[word as usize]))?;
        self.asm("ldi %r2, #0");
        Ok(())
    }

    /// An atomic operation in the lane's window.
    fn own_atomic(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let op = self.any(u, |opcode| opcode.flags().contains(OpcodeFlags::ATOMIC))?;
        let offset = u.int_in_range(0..=WINDOW / 8 - 1)? * 8;
        self.asm(&format!("addi %r1, %r12, #{offset}"));
        let mut operands = Vec::new();
        op.for_each_operand(|operand| operands.push(operand));
        operands[1] = Operand::Gpr(Gpr::new(1));
        let op = Op::from_operands(op.opcode(), &operands).expect("the same kinds");
        self.maybe_op(u, op)
    }

    fn vote(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let text = match u.int_in_range(0..=3)? {
            0 => format!("anyp @p{}, @p{}", flag(u)?, flag(u)?),
            1 => format!("allp @p{}, @p{}", flag(u)?, flag(u)?),
            2 => format!("ballot %r{}, @p{}, #{}", value(u)?, flag(u)?, u.int_in_range(0..=1_i64)?),
            _ => {
                self.asm(&format!("andi %r1, %r{}, #63", value(u)?));
                format!("shfl %r{}, %r{}, %r1", value(u)?, value(u)?)
            }
        };
        self.maybe(u, &text)
    }

    fn print(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let top = self.arch.word().bits() - 1;
        self.asm(&format!("ldi %r1, #1 ; shli %r1, %r1, #{top}"));
        let value = value(u)?;
        self.maybe(u, &format!("st %r{value}, %r1, #0"))
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
            0 => drop(self.asm("trap")),
            1 | 2 => {
                let op = self.any(u, |opcode| opcode.flags().contains(OpcodeFlags::DIVIDES))?;
                self.maybe_op(u, op)?;
            }
            3 => drop(self.asm(&format!("andi %r1, %r{}, #1 ; clone %r1", value(u)?))),
            4 => {
                let text =
                    *u.choose(&["ei", "di", "tlbflush", "tlbrm %r4", "tlbadd %r4, %r5, %r6"])?;
                self.maybe(u, text)?;
            }
            5 => {
                let target = self.asm("ldi %r1, #0");
                self.asm("jmpru %r1");
                self.connect(target, self.here());
            }
            _ => {
                let jump = self.asm(&format!("@p{} ? jmpi #0", flag(u)?));
                self.connect(jump, jump + 1);
            }
        }
        Ok(())
    }

    /// Copies a word of code to a little further on, or to anywhere.
    fn change_code(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let width = i64::from(self.arch.word().bytes());
        let source = u.choose_index(self.here())?;
        self.asm(&format!("ldi %r1, #{} ; ld %r2, %r1, #0", self.address(source)));
        let target = self.asm("ldi %r3, #0");
        let offset = if u.ratio(3, 4)? {
            u.int_in_range(0..=4)? * width
        } else {
            -u.int_in_range(0..=self.address(target))?
        };
        self.maybe(u, "st %r2, %r3, #0")?;
        let address = self.address(self.here()) + offset;
        self.code[target].op = Op::Ldi { dst: Gpr::new(3), imm: address };
        Ok(())
    }

    /// A function that is called where it stands.
    fn call(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let by_register = u.arbitrary()?;
        let target = self.asm("ldi %r1, #0");
        let call = self.asm(if by_register { "jalr %r15, %r1" } else { "jali %r15, #0" });
        let skip = self.asm("jmpi #0");
        self.connect(target, self.here());
        if !by_register {
            self.connect(call, self.here());
        }
        self.compute(u)?;
        self.window(u)?;
        self.asm("jmpr %r15");
        self.connect(skip, self.here());
        Ok(())
    }

    /// Another number of lanes, where no split waits.
    fn lanes(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let count = u.int_in_range(1..=i64::from(self.arch.lanes()))?;
        self.asm(&format!("ldi %r1, #{count}"));
        if u.arbitrary()? {
            let jump = self.asm("jalis %r15, %r1, #0");
            self.connect(jump, jump + 1);
        } else {
            let target = self.asm("ldi %r2, #0");
            self.asm(u.choose(&["jalrs %r15, %r1, %r2", "jmprt %r2"])?);
            self.connect(target, self.here());
        }
        Ok(())
    }

    /// Two sides under a split.
    fn branch(&mut self, u: &mut Unstructured<'_>, depth: u32) -> Result<()> {
        // The sides may change the condition; the branch needs it as it is at the split.
        let (condition, kept) = (flag(u)?, 4 + depth);
        let branch = self.asm(&format!(
            "orp @p{kept}, @p{condition}, @p{condition} ; @p{kept} ? split ; @p{kept} ? jmpi #0"
        ));
        self.block(u, depth)?;
        let to_end = self.asm("jmpi #0");
        self.connect(branch, self.here());
        self.block(u, depth)?;
        self.connect(to_end, self.here());
        self.asm("join");
        Ok(())
    }

    /// A loop that all active lanes leave together.
    fn counted_loop(&mut self, u: &mut Unstructured<'_>, depth: u32) -> Result<()> {
        let (counter, rounds) = (10 + depth, u.int_in_range(1..=5_i64)?);
        let top = self.asm(&format!("ldi %r{counter}, #{rounds}")) + 1;
        self.block(u, depth)?;
        let back = self.asm(&format!(
            "subi %r{counter}, %r{counter}, #1 ; rtop @p7, %r{counter} ; @p7 ? jmpi #0"
        ));
        self.connect(back, top);
        Ok(())
    }

    /// A loop that lanes leave one after the other: those that are done wait under a split.
    fn divergent_loop(&mut self, u: &mut Unstructured<'_>, depth: u32) -> Result<()> {
        let (counter, live) = (10 + depth, 4 + depth);
        let top = self.asm(&format!("andi %r{counter}, %r{}, #3", value(u)?)) + 1;
        let leave = self.asm(&format!(
            "rtop @p{live}, %r{counter} ; anyp @p7, @p{live} ; notp @p7, @p7 ; @p7 ? jmpi #0"
        ));
        let skip = self.asm(&format!("@p{live} ? split ; notp @p7, @p{live} ; @p7 ? jmpi #0"));
        self.block(u, depth)?;
        let join = self.asm(&format!("subi %r{counter}, %r{counter}, #1 ; join"));
        self.connect(skip, join);
        let back = self.asm("jmpi #0");
        self.connect(back, top);
        self.connect(leave, self.here());
        Ok(())
    }
}
