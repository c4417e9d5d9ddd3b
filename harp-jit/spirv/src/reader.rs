//! The instructions of a module's words.
//!
//! The grammar of instructions is rspirv's: which of them have a type and a result, their names, and how many operands
//! they need. Words are kept as they are, since operands are only looked at where an instruction is translated, and
//! since an error then knows the offset. rspirv's own parser keeps no offsets, slices beyond the end of modules that are
//! cut off, and reads one index of `OpSpecConstantOp` with an access chain only.

use std::sync::LazyLock;

use harp_jit::SourcePlace;
use hashbrown::{HashMap, HashSet};
use rspirv::grammar::{INSTRUCTION_TABLE, OperandKind, OperandQuantifier};
use rspirv::spirv::{self, MemoryAccess, Op};

use crate::error::{Result, SpirvErrorKind};
use crate::sets::is_silent;

/// The number by which instructions refer to results.
pub(crate) type Id = u32;

/// The largest bound of ids, a limit of the specification (section 2.17, "Universal Limits").
const MAX_IDS: u32 = 0x3f_ffff;

/// The most words of a module.
const MAX_WORDS: usize = 1 << 26;

/// Words before the first instruction.
const HEADER_WORDS: usize = 5;

/// What an instruction declares.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declares {
    Type,
    Constant,
    /// Something else, or nothing.
    Other,
}

/// What the grammar says about an opcode.
struct Form {
    op: Op,
    name: &'static str,
    declares: Declares,
    has_type: bool,
    has_result: bool,
    /// Operands that are always there, type and result aside; each has at least a word.
    least: usize,
    /// The operands as far as it is known where they are, and whether the last of them is repeated.
    slots: Vec<Slot>,
    repeats: bool,
}

/// What an operand's word is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    Id,
    Number,
}

impl Form {
    fn new(row: &'static rspirv::grammar::Instruction<'static>) -> Form {
        let has = |kind| row.operands.iter().any(|operand| operand.kind == kind);
        let (has_type, has_result) = (has(OperandKind::IdResultType), has(OperandKind::IdResult));
        let needed = row.operands.iter().filter(|o| o.quantifier == OperandQuantifier::One).count();
        let (mut slots, mut repeats) = (Vec::new(), false);
        for operand in row.operands {
            let words: &[Slot] = match operand.kind {
                OperandKind::IdResultType | OperandKind::IdResult => continue,
                OperandKind::IdRef | OperandKind::IdScope | OperandKind::IdMemorySemantics => {
                    &[Slot::Id]
                }
                OperandKind::PairIdRefIdRef => &[Slot::Id, Slot::Id],
                OperandKind::LiteralInteger
                | OperandKind::LiteralExtInstInteger
                | OperandKind::GroupOperation
                | OperandKind::StorageClass
                | OperandKind::LiteralSpecConstantOpInteger => &[Slot::Number],
                // What is behind has no ids of pointers: memory operands, strings, literals of several words.
                _ => break,
            };
            slots.extend_from_slice(words);
            repeats = operand.quantifier == OperandQuantifier::ZeroOrMore;
        }
        let least = needed - usize::from(has_type) - usize::from(has_result);
        let (op, name) = (row.opcode, row.opname);
        let begins = |with| name.starts_with(with);
        let declares = match op {
            Op::TypeForwardPointer => Declares::Other,
            Op::Undef => Declares::Constant,
            _ if begins("Type") => Declares::Type,
            _ if begins("Constant") || begins("SpecConstant") => Declares::Constant,
            _ => Declares::Other,
        };
        Form { op, name, declares, has_type, has_result, least, slots, repeats }
    }
}

/// The forms of all instructions by opcode.
static FORMS: LazyLock<HashMap<u32, Form>> = LazyLock::new(|| {
    INSTRUCTION_TABLE.iter().map(|row| (row.opcode as u32, Form::new(row))).collect()
});

/// What an instruction declares.
pub(crate) fn declares(op: Op) -> Declares {
    FORMS.get(&(op as u32)).map_or(Declares::Other, |form| form.declares)
}

/// The name of an instruction in the specification.
pub(crate) fn op_name(op: Op) -> String {
    format!("Op{}", short_name(op))
}

/// The same without `Op`.
pub(crate) fn short_name(op: Op) -> &'static str {
    FORMS.get(&(op as u32)).map_or("?", |form| form.name)
}

/// Where an instruction is among a module's words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    op: Op,
    ty: Id,
    id: Id,
    /// The index of its first word.
    pub(crate) word: u32,
    /// The index of its first operand, type and result aside.
    start: u32,
    /// The index behind its last word.
    end: u32,
    /// One more than the index of its source line; 0 for none.
    line: u32,
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction<'m> {
    pub(crate) op: Op,
    /// The type of its result, or 0, which is no id.
    pub(crate) ty: Id,
    /// Its result, or 0.
    pub(crate) id: Id,
    /// The words behind.
    pub(crate) operands: &'m [u32],
}

impl<'m> Instruction<'m> {
    /// The operand with this index.
    pub(crate) fn word(self, index: usize) -> Result<u32> {
        let missing = || SpirvErrorKind::malformed(format!("operand {index} is missing"));
        self.operands.get(index).copied().ok_or_else(missing)
    }

    /// The operands from this index on.
    pub(crate) fn rest(self, index: usize) -> &'m [u32] {
        self.operands.get(index..).unwrap_or_default()
    }

    /// The string that begins at an operand, and the index of the operand behind it.
    pub(crate) fn string(self, index: usize) -> Result<(String, usize)> {
        let words = self.rest(index);
        let ends = |word: &u32| word.to_le_bytes().contains(&0);
        let Some(last) = words.iter().position(ends) else {
            return Err(SpirvErrorKind::malformed("a string does not end"));
        };
        let mut bytes = Vec::with_capacity(4 * last + 4);
        words[..=last].iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes
            .truncate(4 * last + words[last].to_le_bytes().iter().take_while(|&&b| b != 0).count());
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| SpirvErrorKind::malformed("a string is not UTF-8"))?;
        Ok((text, index + last + 1))
    }

    /// The alignment among the memory operands that begin with an operand.
    pub(crate) fn alignment(self, operand: usize) -> Option<u64> {
        let &access = self.operands.get(operand)?;
        let is_aligned = access & MemoryAccess::ALIGNED.bits() != 0;
        self.operands.get(operand + 1).filter(|_| is_aligned).map(|&align| align.into())
    }

    /// Whether the memory operands that begin with an operand say that others may access the memory at any time.
    pub(crate) fn is_volatile(self, operand: usize) -> bool {
        let access = self.operands.get(operand).copied().unwrap_or_default();
        access & MemoryAccess::VOLATILE.bits() != 0
    }

    /// The operands that are ids, each with its index. The ids behind memory operands are left out, which are constants.
    pub(crate) fn ids(self) -> impl Iterator<Item = (usize, Id)> + use<'m> {
        let form = FORMS.get(&(self.op as u32));
        let (slots, repeats) = form.map_or((&[][..], false), |form| (&form.slots, form.repeats));
        let last = if repeats { slots.last() } else { None };
        let slots = slots.iter().chain(last.into_iter().cycle());
        let words = self.operands.iter().copied().enumerate().zip(slots);
        words.filter(|(_, slot)| **slot == Slot::Id).map(|(word, _)| word)
    }

    /// The operand with this index as an enumeration of the specification.
    pub(crate) fn enumerant<T>(
        self,
        index: usize,
        what: &'static str,
        from: fn(u32) -> Option<T>,
    ) -> Result<T> {
        let word = self.word(index)?;
        from(word).ok_or_else(|| SpirvErrorKind::malformed(format!("{word} is no {what}")))
    }
}

/// A line of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    file: Id,
    line: u32,
    column: u32,
}

/// The instructions of a module in order.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    words: Vec<u32>,
    entries: Vec<Entry>,
    /// The types of results by their ids, 0 for none.
    result_types: Vec<Id>,
    lines: Vec<Line>,
    files: HashMap<Id, String>,
}

impl Code {
    /// Divides a module into instructions, without those that only a debugger looks at. What goes wrong comes with the
    /// offset of the word.
    pub(crate) fn read(bytes: &[u8]) -> std::result::Result<Code, (SpirvErrorKind, Option<usize>)> {
        let words = words_of(bytes).map_err(|kind| (kind, None))?;
        let mut code = Code {
            result_types: vec![0; words[3] as usize],
            // Most instructions have three words or more.
            entries: Vec::with_capacity(words.len() / 3),
            words,
            lines: Vec::new(),
            files: HashMap::new(),
        };
        let mut at = HEADER_WORDS;
        let mut line = 0;
        let mut silent = HashSet::new();
        while at < code.words.len() {
            let entry = code.entry_at(at, line).map_err(|kind| (kind, Some(at)))?;
            at = entry.end as usize;
            if entry.ty != 0 {
                code.result_types[entry.id as usize] = entry.ty;
            }
            let operands = &code.words[entry.start as usize..entry.end as usize];
            match entry.op {
                // Line 0 says that there is none.
                Op::Line if operands[1] == 0 => line = 0,
                Op::Line => {
                    let place = Line { file: operands[0], line: operands[1], column: operands[2] };
                    if code.lines.last() != Some(&place) {
                        code.lines.push(place);
                    }
                    line = code.lines.len() as u32;
                }
                Op::NoLine => line = 0,
                Op::String => {
                    let text = code.view(entry).string(0);
                    let (text, _) = text.map_err(|kind| (kind, Some(entry.word as usize)))?;
                    code.files.insert(entry.id, text);
                }
                Op::ExtInstImport => {
                    let name = code.view(entry).string(0);
                    let (name, _) = name.map_err(|kind| (kind, Some(entry.word as usize)))?;
                    if is_silent(&name) {
                        silent.insert(entry.id);
                    } else {
                        code.entries.push(entry);
                    }
                }
                // They may stand where no others may, such as before phis.
                Op::ExtInst | Op::ExtInstWithForwardRefsKHR if silent.contains(&operands[0]) => {}
                _ => code.entries.push(entry),
            }
            if is_terminator(entry.op) {
                line = 0;
            }
        }
        Ok(code)
    }

    fn entry_at(&self, at: usize, line: u32) -> Result<Entry> {
        let first = self.words[at];
        let (count, opcode) = ((first >> 16) as usize, first & 0xffff);
        if count == 0 || count > self.words.len() - at {
            let rest = self.words.len() - at;
            let what = format!("an instruction of {count} words where {rest} are left");
            return Err(SpirvErrorKind::malformed(what));
        }
        let unknown = || SpirvErrorKind::unsupported(format!("the unknown opcode {opcode}"));
        let form = FORMS.get(&opcode).ok_or_else(unknown)?;
        let before = usize::from(form.has_type) + usize::from(form.has_result);
        if count < 1 + before + form.least {
            let (name, least) = (form.name, 1 + before + form.least);
            let what = format!("Op{name} of {count} words, it has at least {least}");
            return Err(SpirvErrorKind::malformed(what));
        }
        let operand = |index: usize| self.words[at + 1 + index];
        let ty = if form.has_type { self.checked(operand(0))? } else { 0 };
        let own = usize::from(form.has_type);
        let id = if form.has_result { self.checked(operand(own))? } else { 0 };
        Ok(Entry {
            op: form.op,
            ty,
            id,
            word: at as u32,
            start: (at + 1 + before) as u32,
            end: (at + count) as u32,
            line,
        })
    }

    fn checked(&self, id: Id) -> Result<Id> {
        if id == 0 || id >= self.words[3] {
            return Err(SpirvErrorKind::malformed(format!(
                "%{id} is outside of the module's ids, which end at {}",
                self.words[3]
            )));
        }
        Ok(id)
    }

    /// How many instructions there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The instruction with this index.
    pub(crate) fn get(&self, index: usize) -> Instruction<'_> {
        self.view(self.entries[index])
    }

    fn view(&self, entry: Entry) -> Instruction<'_> {
        let Entry { op, ty, id, start, end, .. } = entry;
        Instruction { op, ty, id, operands: &self.words[start as usize..end as usize] }
    }

    /// The type of the result with this id; none if no instruction has it.
    pub(crate) fn result_type(&self, id: Id) -> Option<Id> {
        self.result_types.get(id as usize).copied().filter(|&ty| ty != 0)
    }

    /// The offset of an instruction's first word.
    pub(crate) fn word_of(&self, index: usize) -> usize {
        self.entries[index].word as usize
    }

    /// The text of an `OpString`.
    pub(crate) fn text(&self, id: Id) -> Option<&str> {
        self.files.get(&id).map(String::as_str)
    }

    /// The number of an instruction's source line; none if the module does not say it.
    pub(crate) fn line_of(&self, index: usize) -> Option<u32> {
        self.entries[index].line.checked_sub(1)
    }

    /// The source place of an instruction.
    pub(crate) fn place(&self, index: usize) -> Option<SourcePlace> {
        let Line { file, line, column } = self.lines[self.line_of(index)? as usize];
        let file = self.text(file)?.to_owned().into();
        // Columns of 0 say that the column is not known.
        Some(SourcePlace { file, line, column: column.max(1) })
    }
}

fn words_of(bytes: &[u8]) -> Result<Vec<u32>> {
    let not = |what| Err(SpirvErrorKind::NotSpirv { what });
    if bytes.len() < HEADER_WORDS * 4 {
        return not("it is shorter than the header of 20 bytes");
    }
    let words: Vec<u32> =
        bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
    if words[0] == spirv::MAGIC_NUMBER.swap_bytes() {
        return not("its words are big-endian");
    }
    if words[0] != spirv::MAGIC_NUMBER {
        return not("it does not begin with the magic number 0x07230203");
    }
    if !bytes.len().is_multiple_of(4) {
        return not("its size is not a multiple of 4 bytes");
    }
    let too_many = |what, given: usize, limit: usize| {
        let (given, limit) = (given as u64, limit as u64);
        Err(SpirvErrorKind::TooMany { what, given, limit })
    };
    if words.len() > MAX_WORDS {
        return too_many("words of the module", words.len(), MAX_WORDS);
    }
    if words[3] > MAX_IDS {
        return too_many("the bound of ids", words[3] as usize, MAX_IDS as usize);
    }
    Ok(words)
}

/// Whether an instruction ends a block.
pub(crate) fn is_terminator(op: Op) -> bool {
    matches!(
        op,
        Op::Branch
            | Op::BranchConditional
            | Op::Switch
            | Op::Return
            | Op::ReturnValue
            | Op::Kill
            | Op::TerminateInvocation
            | Op::Unreachable
    )
}
