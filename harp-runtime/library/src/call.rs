//! Boot code that calls one function.

use harp_isa::object::{Chunk, Permissions, Reference};
use harp_isa::{ArchId, Gpr, Object, WordSize};

use crate::lane::lane_definitions;
use crate::words::words;

const CALL: &str = include_str!("asm/call.s");
const PRINT: &str = include_str!("asm/print.s");
const PAGES: &str = include_str!("asm/pages.s");

/// What the boot code does with the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// They stay in the words of the call, for the host.
    Halt,
    /// They are printed on the console.
    Print,
}

words! {
    /// The words of [`CALL_CHUNK`], which the host fills in. The values of the arguments follow them, those in registers first,
    /// then the results, then two words for each of those that are printed.
    pub enum CallWord {
        /// The base of the stack.
        Stack = "C_STACK",
        /// The stack's limit.
        Limit = "C_LIMIT",
        /// The stack pointer of the function.
        Top = "C_TOP",
        /// The address of the stack arguments' values.
        Arguments = "C_ARGUMENTS",
        /// How many these are.
        ArgumentCount = "C_ARGUMENT_COUNT",
        /// The address of the register arguments' values.
        Registers = "C_REGISTERS",
        /// The address of the function.
        Function = "C_FUNCTION",
        /// Where the results go.
        Results = "C_RESULTS",
        /// The address of the results that the function returns on the stack.
        StackResults = "C_STACK_RESULTS",
        /// How many these are.
        ResultCount = "C_RESULT_COUNT",
        /// The end of the memory in use, up to a page.
        End = "C_END",
        /// The address of what printing must know about each word of the results.
        Printed = "C_PRINTED",
        /// How many words the results have.
        PrintedCount = "C_PRINTED_COUNT",
    }
}

/// The chunk that holds the call's words.
pub const CALL_CHUNK: &str = "runtime.call";

/// What boot code must know of the function that it calls. Words that are in no registers are on the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callee<'a> {
    /// Its name.
    pub name: &'a str,
    /// Words of its arguments.
    pub arguments: usize,
    /// The registers of the first of them.
    pub argument_registers: Vec<Gpr>,
    /// Words of its results.
    pub results: usize,
    /// The registers of the first of them.
    pub result_registers: Vec<Gpr>,
}

/// Boot code that calls `callee`, and the [words](CallWord) of the call. The object refers to the function.
pub fn call(arch: ArchId, callee: &Callee<'_>, ending: Ending) -> Object {
    let word = arch.word();
    let registers = |registers: &[Gpr], access: &str| {
        let lines = registers.iter().map(|register| {
            format!("        {access} {register}, %ra, #0\n        addi %ra, %ra, __WORD\n")
        });
        lines.collect::<String>()
    };
    let arguments = registers(&callee.argument_registers, "ld");
    let results = registers(&callee.result_registers, "st");
    let text = CALL
        .replace("\nARGUMENTS\n", &format!("\n{arguments}"))
        .replace("\nRESULTS\n", &format!("\n{results}"))
        .replace("%base", &format!("%r{}", arch.gprs() / 2));
    let text = match ending {
        Ending::Halt => text,
        Ending::Print => text
            .replace("\nruntime.boot:\n", &format!("\nruntime.boot:\n{PAGES}"))
            .replace("\n        halt\n", &format!("\n{PRINT}")),
    };
    let mut object = harp_isa::assemble(&text, arch, &definitions(word, callee))
        .expect("the text is right for every machine");
    let at = CallWord::Function.offset(word);
    let chunk = object.chunks.iter_mut().find(|chunk| chunk.name == CALL_CHUNK);
    let chunk: &mut Chunk = chunk.expect("the text has it");
    chunk.references.push(Reference::from_word(callee.name, at, arch));
    debug_assert!(chunk.permissions.contains(Permissions::WRITE), "results are stored in it");
    object
}

fn definitions(word: WordSize, callee: &Callee<'_>) -> Vec<(&'static str, i64)> {
    // Printing needs two more words for each of the results.
    let words = CallWord::COUNT + callee.arguments + 3 * callee.results;
    let mut definitions = lane_definitions(word).to_vec();
    definitions.push(("C_WORDS", words as i64));
    definitions.extend(CallWord::definitions(word));
    definitions
}
