//! Assembly made of statements.
//!
//! Registers: `%r0` the lane, `%r1` to `%r3` scratch, `%r4` to `%r9` values, `%r10` and `%r11` loop
//! counters, `%r12` the lane's window, `%r13` the lane's column in the warp's rows, `%r14` the warp,
//! `%r15` links. Predicates: `@p0` to `@p3` values, `@p4` to `@p7` steer. The first shared registers and predicates are
//! values, too; the last shared register holds addresses.

use std::array::from_fn;

use arbitrary::{Result, Unstructured};
use harp_isa::{ArchId, Layout, Opcode, OpcodeFlags, OperandKind, Role, assemble, link};

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

/// Atomic operations whose order does not matter if their results are forgotten.
const SUMS: [&str; 8] = ["add", "and", "or", "xor", "min", "max", "minu", "maxu"];

/// Statements that may interrupt or trap, besides divisions. `NEXT` is what follows.
const FAULTS: [&str; 9] = [
    "trap",
    "andi %r1, %v, #1 ; clone %r1",
    "maybe ei",
    "maybe di",
    "maybe tlbflush",
    "maybe tlbrm %r4",
    "maybe tlbadd %r4, %r5, %r6",
    "ldi %r1, NEXT ; jmpru %r1",
    "@v ? jmpi NEXT",
];

/// Statements in which lanes look at each other.
const VOTES: [&str; 5] = [
    "maybe anyp @v, @v",
    "maybe allp @v, @v",
    "maybe ballot %v, @v, #0",
    "maybe ballot %v, @v, #1",
    "andi %r1, %v, #63 ; maybe shfl %v, %v, %r1",
];

/// Statements about shared registers. `%L` is the last of them.
const SHARED_REGISTERS: [&str; 16] = [
    "maybe ori %s, %v, #0",
    "maybe andp @v, @v, @v",
    "addi %L, %r12, #8 ; maybe st %s, %L, #8 ; maybe ld %s, %L, #8",
    "addi %L, %r12, #16 ; maybe stb %s, %L, #3 ; maybe ldb %s, %L, #3",
    "ldi %L, NEXT ; @v ? jmpr %L",
    "ldi %L, NEXT ; jalr %L, %L",
    "maybe jali %L, NEXT",
    "ldi %L, NEXT ; jalr %r15, %L",
    "andi %L, %v, #1 ; clone %L",
    "ldi %L, #1 ; maybe bar %L, %L",
    "ldi %L, NEXT ; jmpru %L",
    "maybe tlbrm %L",
    "maybe tlbadd %s, %L, %L",
    "ldi %L, #1 ; jalis %L, %L, NEXT",
    "ldi %L, NEXT ; jmprt %L",
    "maybe split ; maybe join",
];

/// Statements of instructions that have a guard nowhere else, with a shared one.
const SHARED_GUARDS: [&str; 6] = [
    "@g ? trap",
    "andi %r1, %v, #1 ; @g ? clone %r1",
    "ldi %r1, NEXT ; @g ? jmpru %r1",
    "ldi %r1, NEXT ; @g ? jalr %r15, %r1",
    "ldi %r1, #1 ; @g ? jalis %r15, %r1, NEXT",
    "ldi %r1, #1 ; ldi %r2, NEXT ; @g ? jalrs %r15, %r1, %r2",
];

/// Jumps with as many lanes as `%r1` says.
const LANES: [&str; 3] =
    ["jalis %r15, %r1, NEXT", "ldi %r2, NEXT ; jalrs %r15, %r1, %r2", "ldi %r2, NEXT ; jmprt %r2"];

/// Code in the making.
pub(super) struct Writer<'c, 'u> {
    u: &'c mut Unstructured<'u>,
    arch: ArchId,
    kind: Kind,
    lines: Vec<String>,
    /// Labels `l1`, `l2` and so on that were named.
    labels: u32,
    /// Statements that may still be made.
    left: u32,
}

impl<'c, 'u> Writer<'c, 'u> {
    pub(super) fn new(u: &'c mut Unstructured<'u>, arch: ArchId, kind: Kind) -> Writer<'c, 'u> {
        Writer { u, arch, kind, lines: Vec::new(), labels: 0, left: 40 }
    }

    /// The whole program: boot code, handler, statements.
    pub(super) fn program(mut self) -> Result<Vec<u8>> {
        self.asm("ldi %r1, handler")?;
        if self.u.ratio(1, 2)? {
            self.asm("di")?;
        }
        // A guard of boot code holds.
        let guard = match self.arch.shared_preds() > 0 && self.u.ratio(1, 4)? {
            true => "rtop @s0, %r1 ; @s0 ? ",
            false => "",
        };
        if self.u.ratio(7, 8)? {
            self.asm(&format!("{guard}skep %r1"))?;
        }
        let spawned = self.u.int_in_range(1..=MAX_WARPS)?;
        self.asm("ldi %r1, start")?;
        for _ in 1..spawned {
            self.asm(&format!("{guard}wspawn %r3, %r1, %r1"))?;
        }
        self.asm("jmpi start")?;
        self.handler()?;
        self.enter()?;
        for _ in 0..self.u.int_in_range(2..=12)? {
            self.statement(0)?;
            if self.u.ratio(1, 6)? {
                // Now and then one that is never complete.
                let warps = if self.u.ratio(1, 16)? { spawned + 1 } else { spawned };
                // Barrier 1 is one at which no warp waits, with shared registers.
                let id = self.u.int_in_range(0..=3)? + if self.arch.has_shared() { 2 } else { 0 };
                self.asm(&format!("ldi %r1, #{id} ; ldi %r2, #{warps} ; bar %r1, %r2"))?;
            }
        }
        if self.arch.shared_preds() > 0 {
            self.asm("@s0 ? halt")?;
        }
        self.asm("halt")?;
        if self.kind == Kind::Wild {
            self.spoil()?;
        }
        let text = self.lines.join("\n");
        let object = assemble(&text, self.arch, &[]);
        let object = object.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let code = link(&[&object], 0).unwrap_or_else(|error| panic!("{error}\n{text}")).bytes;
        assert!(code.len() < CONSTANTS as usize, "code runs into data");
        Ok(code)
    }

    /// Replaces some instructions by any.
    fn spoil(&mut self) -> Result<()> {
        for _ in 0..self.u.int_in_range(1..=6)? {
            let place = self.u.choose_index(self.lines.len())?;
            if !self.lines[place].ends_with(':') {
                self.any(|_| true, None, None)?;
                self.lines.swap_remove(place);
            }
        }
        Ok(())
    }

    /// How many shared registers and predicates have values.
    fn shared_values(&self) -> [u8; 2] {
        [self.arch.shared_gprs().min(4), self.arch.shared_preds().min(2)]
    }

    /// Appends statements, in which `%v` is a register with a value, `@v` a predicate with one, `%s` a shared
    /// register with one, `@g` a shared predicate with one, and `maybe` a guard now and then.
    fn asm(&mut self, template: &str) -> Result<()> {
        let mut text = template.to_owned();
        let [gprs, preds] = self.shared_values();
        for mark in ["maybe ", "%v", "@v", "@g", "%s,"] {
            while text.contains(mark) {
                let choice = match mark {
                    "%v" if gprs > 0 && self.u.ratio(1, 3)? => {
                        format!("%s{}", self.u.int_in_range(0..=gprs - 1)?)
                    }
                    "@v" if preds > 0 && self.u.ratio(1, 2)? => {
                        format!("@s{}", self.u.int_in_range(0..=preds - 1)?)
                    }
                    "%s," => format!("%s{},", self.u.int_in_range(0..=gprs - 1)?),
                    "@g" => format!("@s{}", self.u.int_in_range(0..=preds - 1)?),
                    "%v" => format!("%r{}", self.u.int_in_range(4..=9)?),
                    "@v" => format!("@p{}", self.u.int_in_range(0..=3)?),
                    _ => (if self.u.ratio(1, 3)? { "@v ? " } else { "" }).to_owned(),
                };
                text = text.replacen(mark, &choice, 1);
            }
        }
        self.lines.extend(text.split([';', '\n']).map(|line| line.trim().to_owned()));
        Ok(())
    }

    /// One of these statements, in which `NEXT` is a label behind it.
    fn one_of(&mut self, templates: &[impl AsRef<str>]) -> Result<()> {
        let [next] = self.labels();
        let template = self.u.choose(templates)?.as_ref().replace("NEXT", &next);
        self.asm(&format!("{template} ; {next}:"))
    }

    fn labels<const N: usize>(&mut self) -> [String; N] {
        from_fn(|_| {
            self.labels += 1;
            format!("l{}", self.labels)
        })
    }

    /// A label of code that is or will be there.
    fn any_label(&mut self) -> Result<String> {
        Ok(format!("l{}", self.u.int_in_range(1..=self.labels)?))
    }

    /// Any instruction of the machine with an opcode that is wanted, with a guard now and then. A load, a store or an
    /// atomic operation is told the register with the address, and the offset.
    fn any(
        &mut self,
        wanted: impl Fn(Opcode) -> bool,
        base: Option<&str>,
        offset: Option<i64>,
    ) -> Result<()> {
        let layout = Layout::new(self.arch);
        let has = |&opcode: &Opcode| layout.has(opcode) && wanted(opcode);
        let opcodes: Vec<_> = Opcode::ALL.iter().copied().filter(has).collect();
        let opcode = *self.u.choose(&opcodes)?;
        let all = layout.immediate_range(opcode);
        let near = match opcode {
            Opcode::Csr => 0..=5,
            Opcode::Ballot => 0..=1,
            _ => *all.start().max(&-40)..=*all.end().min(&40),
        };
        // These trap if it is another number.
        let few = self.kind == Kind::RaceFree && matches!(opcode, Opcode::Csr | Opcode::Ballot);
        // One that does not fit is made smaller: the largest that fits is all ones.
        let offset = offset.map(|offset| format!("#{}", offset & all.end()));
        let near = if few || self.u.ratio(3, 4)? { near } else { all };
        let place = [None, base.map(str::to_owned), offset];
        let operands = opcode.operands().iter().zip(place).map(|(operand, fixed)| {
            Ok(match (operand.kind, fixed) {
                (OperandKind::Pred(_), _) => "@v".to_owned(),
                (_, Some(fixed)) => fixed,
                (OperandKind::Gpr(_), None) => "%v".to_owned(),
                (_, None) => format!("#{}", self.u.int_in_range(near.clone())?),
            })
        });
        let operands = operands.collect::<Result<Vec<_>>>()?.join(", ");
        self.asm(&format!("maybe {} {operands}", opcode.mnemonic()))
    }

    /// Returns, but for a divergent branch, which would come again.
    fn handler(&mut self) -> Result<()> {
        let console = self.arch.word().bits() - 1;
        self.asm(&format!(
            "handler: ; subi %r2, %r0, #4 ; iszero @p5, %r2 ; subi %r2, %r0, #8 ; iszero @p6, %r2
             tid %r3 ; iszero @p7, %r3 ; andp @p5, @p5, @p7 ; andp @p6, @p6, @p7 ; @p5 ? halt
             ldi %r2, #1 ; shli %r2, %r2, #{console} ; @p6 ? ld %r3, %r2, #0 ; reti"
        ))
    }

    /// All lanes, with their numbers and addresses.
    fn enter(&mut self) -> Result<()> {
        let (lanes, width) = (self.arch.lanes(), i64::from(self.arch.word().bytes()));
        let [all] = self.labels();
        // With shared registers the immediate may be a bit shorter.
        let tables = match self.arch.has_shared() {
            true => format!("ldi %r13, #{} ; shli %r13, %r13, #4", TABLES / 16),
            false => format!("ldi %r13, #{TABLES}"),
        };
        self.asm(&format!(
            "start: ; ldi %r1, #{lanes} ; jalis %r15, %r1, {all} ; {all}:
             tid %r0 ; csr %r14, #1 ; csr %r2, #2 ; muli %r2, %r2, #{MAX_WARPS}
             add %r2, %r2, %r14 ; muli %r2, %r2, #{MAX_LANES}
             ldi %r12, #{WINDOWS} ; add %r3, %r2, %r0 ; muli %r3, %r3, #{WINDOW} ; add %r12, %r12, %r3
             {tables} ; muli %r3, %r2, #{} ; add %r13, %r13, %r3
             muli %r3, %r0, #{width} ; add %r13, %r13, %r3",
            ROWS * width
        ))?;
        for reg in 4..=9 {
            let step = reg * 3 - 20;
            self.asm(&format!("muli %r{reg}, %r0, #{step} ; addi %r{reg}, %r{reg}, #{reg}"))?;
        }
        for pred in 0..=3 {
            self.asm(&format!("andi %r1, %r0, #{} ; rtop @p{pred}, %r1", 1 << pred))?;
        }
        let [gprs, preds] = self.shared_values();
        for shared in 0..gprs {
            self.asm(&format!(
                "muli %s{shared}, %r14, #5 ; addi %s{shared}, %s{shared}, #{shared}"
            ))?;
        }
        for shared in 0..preds {
            self.asm(&format!("rtop @s{shared}, %r{}", 4 + shared))?;
        }
        Ok(())
    }

    fn block(&mut self, depth: u32) -> Result<()> {
        for _ in 0..self.u.int_in_range(0..=3)? {
            self.statement(depth + 1)?;
        }
        Ok(())
    }

    fn statement(&mut self, depth: u32) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        if self.arch.has_shared() && self.u.ratio(1, 4)? {
            return self.shared_registers();
        }
        match self.u.int_in_range(0..=if depth < 3 { 18 } else { 13 })? {
            4 => self.window(),
            5 => self.row(),
            6 => self.constant(),
            7 => self.shared(),
            8 => self.own_atomic(),
            9 => self.one_of(&VOTES),
            10 => {
                let console = self.arch.word().bits() - 1;
                self.asm(&format!("ldi %r1, #1 ; shli %r1, %r1, #{console} ; maybe st %v, %r1, #0"))
            }
            11 => self.fault(),
            12 => self.call(),
            13 if depth == 0 => {
                // Another number of lanes, where no split waits.
                let count = self.u.int_in_range(1..=self.arch.lanes())?;
                self.asm(&format!("ldi %r1, #{count}"))?;
                self.one_of(&LANES)
            }
            14 | 15 => self.branch(depth),
            16 if depth < 2 => self.counted_loop(depth),
            17 if depth < 2 => self.divergent_loop(depth),
            18 if depth < 2 => self.words(depth),
            _ => self.compute(),
        }
    }

    /// Whatever computes in registers.
    fn compute(&mut self) -> Result<()> {
        let without_nans = self.u.ratio(4, 5)?;
        let wanted = |opcode: Opcode| {
            let first = opcode.operands().first().and_then(|operand| operand.kind.register());
            // Divisions by zero are faults.
            let others = OpcodeFlags::CONTROL
                | OpcodeFlags::ONCE_PER_WARP
                | OpcodeFlags::ATOMIC
                | OpcodeFlags::LOAD
                | OpcodeFlags::DIVIDES;
            first.is_some_and(|(_, role)| role != Role::Use)
                && !opcode.flags().intersects(others)
                && !(without_nans && may_make_nan(opcode))
        };
        self.any(wanted, None, None)
    }

    /// A load or a store in the lane's own window.
    fn window(&mut self) -> Result<()> {
        let offset = self.u.int_in_range(0..=WINDOW - 8)?;
        let offset = if self.u.ratio(1, 4)? { offset & !7 } else { offset };
        let plain = OpcodeFlags::LOAD | OpcodeFlags::STORE;
        self.any(|opcode| opcode.flags().intersects(plain), Some("%r12"), Some(offset))
    }

    /// A load or a store of a row, word by word.
    fn row(&mut self) -> Result<()> {
        let row = MAX_LANES * i64::from(self.arch.word().bytes());
        let offset = self.u.int_in_range(0..=ROWS - 1)? * row;
        self.any(|opcode| [Opcode::Ld, Opcode::St].contains(&opcode), Some("%r13"), Some(offset))
    }

    /// A loop of loads and stores of few words, of the lane's own window and of its neighbour's, by several registers.
    fn words(&mut self, depth: u32) -> Result<()> {
        let ([top], counter) = (self.labels(), 10 + depth);
        let rounds = self.u.int_in_range(2..=4)?;
        self.asm(&format!("ldi %r{counter}, #{rounds} ; ori %r3, %r12, #0 ; {top}:"))?;
        let width = i64::from(self.arch.word().bytes());
        // With few lanes nobody has the windows behind the last one's.
        let may_stray = i64::from(i64::from(self.arch.lanes()) <= MAX_LANES / 2);
        for _ in 0..self.u.int_in_range(2..=8)? {
            let offset =
                self.u.int_in_range(0..=2)? * width + self.u.int_in_range(0..=may_stray)? * WINDOW;
            let own = self.u.int_in_range(0..=1)? * width;
            let access = match self.u.int_in_range(0..=9)? {
                0..=2 => format!("maybe ld %v, %r12, #{offset}"),
                3 | 4 => format!("maybe st %v, %r12, #{offset}"),
                5 => format!("maybe ld %v, %r3, #{own}"),
                6 => format!("maybe st %v, %r3, #{own} ; addi %r3, %r3, #{}", width * may_stray),
                7 => format!("addi %r2, %r12, #{own} ; st %v, %r2, #{offset}"),
                8 => format!("ldi %r2, #0 ; shfl %r2, %r12, %r2 ; maybe st %v, %r2, #{own}"),
                _ => format!("addi %r2, %r12, #{own} ; amoadd %r2, %r2, %v"),
            };
            self.asm(&access)?;
        }
        self.asm(&format!(
            "subi %r{counter}, %r{counter}, #1 ; rtop @p7, %r{counter} ; @p7 ? jmpi {top}"
        ))
    }

    /// Something with shared registers.
    fn shared_registers(&mut self) -> Result<()> {
        if self.arch.shared_preds() > 0 && self.u.ratio(1, 8)? {
            return self.one_of(&SHARED_GUARDS);
        }
        // To where the last interrupt came: maybe into boot code, which would start one warp more than barriers know of.
        if self.kind == Kind::Wild && self.u.ratio(1, 12)? {
            return self.asm("@v ? reti");
        }
        let last = format!("%s{}", self.arch.shared_gprs() - 1);
        if self.u.ratio(2, 3)? {
            return self.one_of(&SHARED_REGISTERS.map(|text| text.replace("%L", &last)));
        }
        // The first of the warp's rows.
        let width = i64::from(self.arch.word().bytes());
        let offset = self.u.int_in_range(0..=(ROWS - 1) * MAX_LANES * width)?;
        let offset = if self.u.ratio(3, 4)? { offset & !7 } else { offset };
        self.asm(&format!("muli %r3, %r0, #{width} ; sub {last}, %r13, %r3"))?;
        let plain = OpcodeFlags::LOAD | OpcodeFlags::STORE;
        self.any(|opcode| opcode.flags().intersects(plain), Some(&last), Some(offset))
    }

    /// A load of a constant, from one address or from many.
    fn constant(&mut self) -> Result<()> {
        self.asm(&format!("ldi %r1, #{CONSTANTS}"))?;
        if self.u.arbitrary()? {
            self.asm("andi %r2, %v, #0xf8 ; add %r1, %r1, %r2")?;
        }
        let offset = self.u.int_in_range(0..=16)?;
        self.any(|opcode| opcode == Opcode::Ld, Some("%r1"), Some(offset))
    }

    /// An atomic operation whose old value is forgotten, on a word that only such operations touch.
    fn shared(&mut self) -> Result<()> {
        let word = self.u.choose_index(SUMS.len())?;
        self.asm(&format!("ldi %r1, #{}", SHARED + 8 * word as i64))?;
        if self.kind == Kind::Wild && self.u.ratio(2, 3)? {
            // Warps that race.
            return self.one_of(&["maybe ld %v, %r1, #0", "maybe st %v, %r1, #0"]);
        }
        self.asm(&format!("maybe amo{} %r2, %r1, %v ; ldi %r2, #0", SUMS[word]))
    }

    /// An atomic operation in the lane's window.
    fn own_atomic(&mut self) -> Result<()> {
        let offset = self.u.int_in_range(0..=WINDOW / 8 - 1)? * 8;
        self.asm(&format!("addi %r1, %r12, #{offset}"))?;
        self.any(|opcode| opcode.flags().contains(OpcodeFlags::ATOMIC), Some("%r1"), None)
    }

    /// Something that may interrupt or trap.
    fn fault(&mut self) -> Result<()> {
        match self.u.int_in_range(0..=6)? {
            0..=3 if self.kind == Kind::Wild => self.change_code(),
            4 => self.any(|opcode| opcode.flags().contains(OpcodeFlags::DIVIDES), None, None),
            5 | 6 => self.one_of(&FAULTS),
            _ => self.compute(),
        }
    }

    /// Copies a word of code to a little further on, or to anywhere.
    fn change_code(&mut self) -> Result<()> {
        let [next] = self.labels();
        let (from, other) = (self.any_label()?, self.any_label()?);
        let to = if self.u.ratio(3, 4)? { &next } else { &other };
        let width = self.arch.word().bytes();
        let [read, written] = [self.u.int_in_range(0..=4)?, self.u.int_in_range(0..=4)?];
        let [read, written] = [read * width, written * width];
        self.asm(&format!(
            "ldi %r1, {from} ; ld %r2, %r1, #{read}
             ldi %r3, {to} ; maybe st %r2, %r3, #{written} ; {next}:"
        ))
    }

    /// A function that is called where it stands.
    fn call(&mut self) -> Result<()> {
        let [inside, next] = self.labels();
        let direct = format!("jali %r15, {inside}");
        let call = if self.u.arbitrary()? { "jalr %r15, %r1" } else { &direct };
        self.asm(&format!("ldi %r1, {inside} ; {call} ; jmpi {next} ; {inside}:"))?;
        self.compute()?;
        self.window()?;
        self.asm(&format!("jmpr %r15 ; {next}:"))
    }

    /// Two sides under a split.
    fn branch(&mut self, depth: u32) -> Result<()> {
        // The sides may change the condition; the branch needs it as it is at the split.
        let kept = 4 + depth;
        let ([side, end], flag) = (self.labels(), self.u.int_in_range(0..=3)?);
        self.asm(&format!(
            "orp @p{kept}, @p{flag}, @p{flag} ; @p{kept} ? split ; @p{kept} ? jmpi {side}"
        ))?;
        self.block(depth)?;
        self.asm(&format!("jmpi {end} ; {side}:"))?;
        self.block(depth)?;
        self.asm(&format!("{end}: ; join"))
    }

    /// A loop that all active lanes leave together.
    fn counted_loop(&mut self, depth: u32) -> Result<()> {
        let ([top], counter) = (self.labels(), 10 + depth);
        let rounds = self.u.int_in_range(1..=5)?;
        self.asm(&format!("ldi %r{counter}, #{rounds} ; {top}:"))?;
        self.block(depth)?;
        self.asm(&format!(
            "subi %r{counter}, %r{counter}, #1 ; rtop @p7, %r{counter} ; @p7 ? jmpi {top}"
        ))
    }

    /// A loop that lanes leave one after the other: those that are done wait under a split.
    fn divergent_loop(&mut self, depth: u32) -> Result<()> {
        let ([top, join, out], counter, live) = (self.labels(), 10 + depth, 4 + depth);
        self.asm(&format!(
            "andi %r{counter}, %v, #3 ; {top}: ; rtop @p{live}, %r{counter}
             anyp @p7, @p{live} ; notp @p7, @p7 ; @p7 ? jmpi {out}
             @p{live} ? split ; notp @p7, @p{live} ; @p7 ? jmpi {join}"
        ))?;
        self.block(depth)?;
        self.asm(&format!(
            "subi %r{counter}, %r{counter}, #1 ; {join}: ; join ; jmpi {top} ; {out}:"
        ))
    }
}
