//! Images that call a function and print its results: the programs of the file tests, on machines of all
//! shapes, hold base instructions only and print the same.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::fs;
use std::path::Path;

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Signature;
use harp_emu::{Interrupts, Machine, MachineConfig, Memory, Schedule, SpawnPolicy, Translation};
use harp_isa::{ArchId, Image, WordSize};
use harp_jit::text::{RunCommand, TextFile, parse_run_command};
use harp_jit::{CompileOptions, Execution, Module};
use harp_runtime::Program;
use harp_tests::base_forms::violations;

/// 8 to 64 registers, 2 to 64 predicates, 1 to 64 lanes, both encodings.
const FOUR: [&str; 7] = [
    "harp32",
    "4w8/2/1/1",
    "4b8/2/64/4",
    "4w63/2/4/4",
    "4w64/64/8/1",
    "4b16/16/2/1",
    "4b64/64/4/2",
];
const EIGHT: [&str; 7] = [
    "harp64",
    "8w8/2/1/1",
    "8b8/2/64/1",
    "8w63/63/4/4",
    "8w64/64/2/64",
    "8b16/16/2/1",
    "8b63/2/4/2",
];

/// Rows of the thesis's table 3, with the files of each.
const FILES: [&str; 14] = [
    "arithmetic/bitwise.clif",
    "arithmetic/division.clif",
    "memory/loads_stores.clif",
    "memory/pointers.clif",
    "floats/single.clif",
    "calls/direct.clif",
    "calls/indirect.clif",
    "conventions/arguments.clif",
    "structures/records.clif",
    "control/tables.clif",
    "immediates/large.clif",
    "globals/data.clif",
    "programs/quick_sort.clif",
    "programs/shuffle.clif",
];

/// A call and the results that are expected of it.
struct Expectation {
    function: String,
    signature: Signature,
    args: Vec<DataValue>,
    results: Vec<DataValue>,
}

/// The first line of each function.
fn expectations(file: &TextFile) -> Vec<Expectation> {
    let lines = file.functions().iter().filter_map(|function| {
        let signature = &function.func.signature;
        let mut commands = function
            .comments
            .iter()
            .map(|comment| parse_run_command(&comment.text, signature).unwrap());
        commands.find_map(|command| match command {
            Some(RunCommand::Run(call, _, results)) => Some(Expectation {
                function: function.name.clone(),
                signature: signature.clone(),
                args: call.args,
                results,
            }),
            _ => None,
        })
    });
    lines.collect()
}

/// The words of values, the lowest first, zero above narrow ones.
fn words(values: &[DataValue], word: WordSize) -> Vec<Vec<u64>> {
    let bytes = usize::from(word.bytes());
    let words = values.iter().map(|value| {
        let mut buffer = [0; 16];
        let size = value.ty().bytes() as usize;
        value.write_to_slice_le(&mut buffer[..size]);
        let words = buffer[..size.next_multiple_of(bytes)].chunks(bytes);
        words
            .map(|word| word.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
            .collect()
    });
    words.collect()
}

/// What the console shows: a line a result, all digits of a word, the lowest word first.
fn console(results: &[DataValue], word: WordSize) -> String {
    let digits = usize::from(word.bytes()) * 2;
    let lines = words(results, word).into_iter().map(|words| {
        let digits: String = words.iter().map(|word| format!("{word:0digits$x}")).collect();
        digits + "\n"
    });
    lines.collect()
}

/// Runs an image as the original emulator does.
fn run(image: &Image, translation: Translation) -> String {
    let memory = Memory::new(image.arch.word(), 16 << 20).unwrap();
    memory.write(0, &image.bytes).unwrap();
    let config = MachineConfig {
        interrupts: Interrupts::Guest,
        translation,
        spawn: SpawnPolicy::Original,
        schedule: Schedule::Step,
        fuel: Some(10_000_000),
        ..MachineConfig::new(image.arch)
    };
    let mut machine = Machine::new(config, &memory).unwrap();
    machine.run().unwrap_or_else(|trap| panic!("{}: {trap}", image.arch));
    String::from_utf8(machine.console()).unwrap()
}

fn check(archs: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let options = CompileOptions { execution: Execution::SingleLane, ..CompileOptions::default() };
    let mut runs = 0;
    for name in FILES {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let file = TextFile::parse(&text, name).unwrap();
        let expectations = expectations(&file);
        assert!(!expectations.is_empty(), "{name}");
        for arch in archs {
            let arch: ArchId = arch.parse().unwrap();
            let mut module = Module::new(arch, options.clone());
            file.define(&mut module).unwrap_or_else(|error| panic!("{name} on {arch}: {error}"));
            let module = module.finish().unwrap();
            for expected in &expectations {
                let at = format!("{name} %{} on {arch}", expected.function);
                let program = Program::printing(&module, &expected.function, &expected.signature);
                let program = program.unwrap_or_else(|error| panic!("{at}: {error}"));
                let args = words(&expected.args, arch.word()).concat();
                let image = program.image(&args).unwrap();
                let (mut found, seen) = violations(&image);
                // Boot code maps pages, with the one privileged instruction that any machine has for it.
                found.retain(|violation| !violation.contains("`tlbadd`"));
                assert!(found.is_empty(), "{at}: {found:?}");
                assert!(seen > 20);
                let translation = [Translation::Physical, Translation::Tlb][runs % 2];
                let wanted = console(&expected.results, arch.word());
                assert_eq!(run(&image, translation), wanted, "{at}");
                runs += 1;
            }
        }
    }
    assert!(runs > 300, "{runs} runs");
}

#[test]
fn images_of_four_byte_machines_print_the_same() {
    check(&FOUR);
}

#[test]
fn images_of_eight_byte_machines_print_the_same() {
    check(&EIGHT);
}
