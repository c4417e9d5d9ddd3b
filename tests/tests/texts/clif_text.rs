//! CLIF text: what is wrong with it and where, and that no text makes the reader or the code generator panic.

use std::fs;
use std::path::Path;

use harp_isa::asm::Colors;
use harp_jit::text::{Call, CallError, TextError, TextErrorKind, TextFile};
use harp_jit::{CompileError, CompileOptions, Execution, Module, ModuleError};
use harp_tests::seeds::random_bytes;
use walkdir::WalkDir;

fn error(text: &str) -> TextError {
    TextFile::parse(text, "t.clif").map(|_| ()).expect_err("the text is wrong")
}

/// A function with this body.
fn function(body: &str) -> String {
    format!("function %f(i32) -> i32 {{\nblock0(v0: i32):\n    {body}\n}}\n")
}

#[test]
fn errors_have_lines_and_columns() {
    for (body, message) in [
        ("v1 = iadd v0, v9\n    return v1", "t.clif:3:19: undefined operand value v9"),
        ("v1 = frob v0\n    return v1", "t.clif:3:10: Unknown opcode: 'frob'"),
        ("v1 = iadd.f32 v0, v0\n    return v1", "t.clif:3:23: f32 is not a valid typevar for iadd"),
        ("v1 = iadd v0 v0\n    return v1", "t.clif:3:18: expected ',' between operands"),
        ("return v0 §", "t.clif:3:15: no item of the language starts like this"),
        ("v1 = iconst.i32 0x1_0000_0000\n    return v1", "t.clif:3:21: unable to parse"),
        ("jump block4000000000", "t.clif:3:10: entity number 4000000000, the limit is 1048576"),
    ] {
        let error = error(&function(body)).to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert_eq!(error("function %f() {").to_string(), "t.clif:1:15: expected block header");
    let text = "function %f() { fn0 = userextname3() block0: call fn0() return }";
    assert_eq!(
        error(text).to_string(),
        "t.clif:1:1: the function `f` uses an external name that it does not declare"
    );
    assert!(error("; data: %a i8 300\n").to_string().starts_with("t.clif:1:1: not a datum: `300`"));
}

#[test]
fn errors_show_the_line_with_a_caret() {
    let text = function("v1 = iadd v0, v9\n    return v1");
    assert_eq!(
        error(&text).render(&text, Colors::Plain),
        "error: undefined operand value v9\n \
         --> t.clif:3:19\n  \
         |\n\
         3 |     v1 = iadd v0, v9\n  \
         |                   ^^\n"
    );
}

/// What Cranelift's reader answers with a panic or by taking all memory.
#[test]
fn what_the_reader_does_not_survive_is_refused() {
    for text in [
        "function %f() { gv0 = dyn_scale_target_const.i32 block0: return }",
        "function %f() { dt0 = i32 * gv0 block0: return }",
        "function %f() { ss4294967294 = explicit_slot 8 block0: return }",
        "function %f() { fn4000000000 = %g() block0: return }",
    ] {
        let kind = error(text).kind;
        let refused =
            matches!(kind, TextErrorKind::DynamicVectors | TextErrorKind::EntityNumber { .. });
        assert!(refused, "{text}: {kind:?}");
    }
    // Gaps in the numbers of functions leave some without a signature.
    let text = "function %f() { fn3 = %g() block0: call fn3() return }
        function %g() { block0: return }";
    let file = TextFile::parse(text, "t.clif").unwrap();
    let mut module = Module::new("harp32".parse().unwrap(), CompileOptions::default());
    file.define(&mut module).unwrap();
    module.finish().unwrap();
}

/// The place of an instruction goes with it to the code generator.
#[test]
fn compile_errors_name_the_line() {
    let text = function("v1 = iadd v0, v0\n    v2 = uextend.i128 v1\n    return v1");
    let file = TextFile::parse(&text, "t.clif").unwrap();
    let mut module = Module::new("harp32".parse().unwrap(), CompileOptions::default());
    match file.define(&mut module) {
        Err(ModuleError::Compile(CompileError::Unsupported { place: Some(place), .. })) => {
            assert_eq!(place.to_string(), "t.clif:4:10");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn invalid_functions_name_the_line() {
    let text = function("v1 = uextend.i64 v0\n    return v1");
    let file = TextFile::parse(&text, "t.clif").unwrap();
    let error = file.verify(&file.functions()[0]).unwrap_err();
    assert!(error.to_string().starts_with("t.clif:4:5: `f` is not valid: "), "{error}");
    assert!(error.render(&text, Colors::Plain).contains("4 |     return v1"));
    let file = TextFile::parse("\n function %f() { }", "t.clif").unwrap();
    let error = file.verify(&file.functions()[0]).unwrap_err();
    assert_eq!(error.to_string(), "t.clif:2:2: `f` is not valid: the function has no blocks");
}

#[test]
fn calls_are_checked_against_the_function() {
    let text = "function %f(i8, f32) -> i8 { block0(v0: i8, v1: f32): return v0 }";
    let file = TextFile::parse(text, "t.clif").unwrap();
    let parse = |call| Call::parse(call, |name| Some(&file.function(name)?.func.signature));
    assert_eq!(parse(" %f(-0x10, -0x1.8p1) ").unwrap().args.len(), 2);
    assert_eq!(parse("%f(255, NaN)").unwrap().args.len(), 2);
    assert!(matches!(parse("f(1, 2.0)"), Err(CallError::Syntax { .. })));
    assert!(matches!(parse("%f"), Err(CallError::Syntax { .. })));
    assert!(matches!(parse("%g()"), Err(CallError::NoFunction { .. })));
    assert!(matches!(parse("%f(1)"), Err(CallError::Count { expected: 2, given: 1, .. })));
    assert!(matches!(parse("%f(1, 2.0, 3)"), Err(CallError::Count { expected: 2, given: 3, .. })));
    assert!(matches!(parse("%f(256, 0x1.0)"), Err(CallError::Argument { number: 1, .. })));
    assert!(matches!(parse("%f(1 2, 0x1.0)"), Err(CallError::Argument { number: 1, .. })));
    let error = parse("%f(1 2.0)").unwrap_err();
    assert_eq!(error.to_string(), "argument 1 of `%f`, `1 2.0`: a comma is missing");
    assert!(matches!(parse("%f(1, 7)"), Err(CallError::Argument { number: 2, .. })));
}

/// What the verifier would ask a target about is as valid as what it asks nobody about.
#[test]
fn questions_about_the_frame_are_valid() {
    for (opcode, supported) in
        [("get_frame_pointer", true), ("get_return_address", true), ("get_pinned_reg", false)]
    {
        let text = function(&format!("v1 = {opcode}.i32\n    return v1"));
        let file = TextFile::parse(&text, "t.clif").unwrap();
        let function = &file.functions()[0];
        file.verify(function).unwrap();
        let options = CompileOptions::default();
        let compiled = file.compile(function, "harp32".parse().unwrap(), &options);
        assert_eq!(compiled.is_ok(), supported, "{opcode}");
        // An address of less than a word is no address.
        match file.compile(function, "harp64".parse().unwrap(), &options) {
            Err(ModuleError::Compile(CompileError::Unsupported { place: Some(_), .. })) => {}
            other => panic!("{opcode}: {other:?}"),
        }
    }
}

/// Words that change a text into others that are nearly right.
const WORDS: [&str; 44] = [
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "f32",
    "f64",
    "i32x4",
    "v0",
    "v1",
    "v2",
    "v999",
    "block0",
    "block1",
    "iadd",
    "icmp",
    "return",
    "jump",
    "brif",
    "br_table",
    "call",
    "fn0",
    "ss0",
    "gv0",
    "uextend",
    "bitcast.i32",
    "load.i64",
    "iconcat",
    "isplit",
    "select",
    "trap",
    "stack_addr.i64",
    "isub",
    "bxor",
    "f16",
    "f128",
    "i8x8",
    "i64x2",
    "splat.i16x4",
    "bitcast.i16x4 little",
    "get_frame_pointer.i32",
    "get_pinned_reg.i64",
    "%harp_ballot",
    "%harp_of_some_lane",
];

/// How many letters a word begins with.
fn letters(word: &str) -> usize {
    word.chars().take_while(char::is_ascii_alphabetic).count()
}

/// The length of the name that a word begins with.
fn name_length(word: &str) -> usize {
    word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(word.len())
}

/// The text with some of its words exchanged, left out or doubled.
fn mutated(text: &str, seed: u64) -> String {
    let bytes = random_bytes(seed, 64);
    let mut choices =
        bytes.chunks_exact(2).map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]])));
    let mut next = || choices.next().unwrap_or(0);
    let mut words: Vec<String> =
        text.split_inclusive([' ', '\n', ',', '(', ')']).map(str::to_owned).collect();
    for _ in 0..=next() % 2 {
        let (at, from, word) =
            (next() % words.len(), next() % words.len(), WORDS[next() % WORDS.len()]);
        match next() % 8 {
            0 => words[at] = format!("{word} "),
            // Another type, value, block or opcode of as many letters, so that more remains a text.
            5.. => {
                let found = (0..words.len()).map(|n| (at + n) % words.len());
                let mut found = found.filter(|&n| name_length(&words[n]) > 0);
                let like = |n: &usize| letters(&words[*n]) == letters(word);
                if let Some(n) = found.find(like) {
                    let length = name_length(&words[n]);
                    words[n].replace_range(..length, word);
                }
            }
            1 => words[at] = words[from].clone(),
            2 => words[at].clear(),
            3 => words.swap(at, from),
            _ => words[at].insert_str(0, word),
        }
    }
    words.concat()
}

/// Neither the reader nor what follows it panics, and the net below the reader is not needed.
#[test]
fn no_text_panics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let texts: Vec<String> = WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| fs::read_to_string(entry.path()).unwrap())
        .flat_map(|text| {
            // A function at a time: what is wrong with one hides the others.
            let functions: Vec<String> =
                text.split("\nfunction ").skip(1).map(|f| format!("function {f}\n")).collect();
            functions
        })
        .collect();
    let options = CompileOptions {
        execution: Execution::SingleLane,
        verify: false,
        ..CompileOptions::default()
    };
    let (mut refused, mut read, mut compiled) = (0, 0, 0);
    let count = std::env::var("HARP_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    for seed in 0..count {
        let text = mutated(&texts[seed as usize % texts.len()], seed);
        match TextFile::parse(&text, "t.clif") {
            Err(TextError { kind: TextErrorKind::Reader(message), .. }) => {
                panic!("seed {seed}: the reader panics: {message}\n{text}");
            }
            Err(error) => {
                error.render(&text, Colors::Plain);
                refused += 1;
            }
            Ok(file) => {
                read += 1;
                let arch = ["harp32", "harp64+x"][seed as usize % 2].parse().unwrap();
                let results = file.functions().iter().map(|f| file.compile(f, arch, &options));
                for result in results {
                    match result {
                        Ok(_) => compiled += 1,
                        Err(ModuleError::Compile(error @ CompileError::Internal { .. })) => {
                            panic!("seed {seed}: {error}\n{text}");
                        }
                        Err(_) => {}
                    }
                }
            }
        }
    }
    assert!(refused > count / 4, "{refused} texts were refused");
    assert!(read > count / 6, "{read} texts were read");
    assert!(compiled > count / 30, "{compiled} functions were compiled");
}
