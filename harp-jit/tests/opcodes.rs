//! Every CLIF opcode on every type: compiled or refused by name, but never a panic or an internal error.
//!
//! The kernels are written by the operand format of each opcode. Forms that the reader rejects for a type are
//! skipped, but every opcode must be accepted once.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::instructions::InstructionFormat;
use cranelift_codegen::ir::{Function, Opcode};
use harp_jit::{ArchId, CompileError, CompileOptions, KernelSource, OptLevel};

const ARCHS: [&str; 4] = ["harp32", "harp64", "4w16/16/4/2+x", "8w16/16/4/2+x"];

const TYPES: [&str; 16] = [
    "i8", "i16", "i32", "i64", "i128", "f16", "f32", "f64", "f128", "i8x16", "i16x8", "i32x4",
    "i64x2", "f32x4", "f64x2", "i8x8",
];

/// Declarations that the kernels may refer to.
const DECLARATIONS: &str = "
    ss0 = explicit_slot 64
    gv0 = symbol %data
    const0 = 0x000102030405060708090a0b0c0d0e0f
    sig0 = (i32) -> i32 fast
    sig1 = (i32) -> i32 tail
    sig2 = (i32) tail
    fn0 = %callee(i32) -> i32 fast
    fn2 = %throws(i32) -> i32 tail
    fn3 = %tail(i32) tail";

/// Declarations that only some of them contain: no machine supports them, so these kernels are refused.
const DYNAMIC: &str = "
    gv1 = dyn_scale_target_const.i32x4
    dt0 = i32x4*gv1
    dss0 = explicit_dynamic_slot dt0";

/// A kernel around the instruction `text`, which loads its operands `a0 ..` of the given types; the
/// instruction's results are stored if it is not a terminator.
fn kernel(
    arch: ArchId,
    operands: &[&str],
    text: &str,
    results: usize,
    ends: bool,
) -> Option<Function> {
    let word = if arch.word().bytes() == 4 { "i32" } else { "i64" };
    let mut body = String::new();
    for (index, ty) in operands.iter().enumerate() {
        let _ = writeln!(body, "v{} = load.{ty} aligned v0+{}", index + 1, 16 * index);
    }
    let names: Vec<_> = (10..10 + results).map(|n| format!("v{n}")).collect();
    let left = if results == 0 { String::new() } else { format!("{} = ", names.join(", ")) };
    let _ = writeln!(body, "{left}{text}");
    let mut stores = String::new();
    let whole = |stores: &str| {
        let end = if ends { "" } else { "return" };
        let convention = if ends && text.starts_with("return_call") { "tail" } else { "fast" };
        let dynamic = if text.contains("dss0") || text.contains("gv1") { DYNAMIC } else { "" };
        let text = format!(
            "function %k({word}) {convention} {{{DECLARATIONS}{dynamic}\nblock0(v0: {word}):\n{body}{stores}{end}\n\
             block1:\nreturn\nblock2:\ntrap user2\nblock3(v90: i32):\nreturn\n}}"
        );
        // The reader panics when it queries the lanes of an ill-typed operand.
        let read = std::panic::catch_unwind(|| cranelift_reader::parse_functions(&text));
        Some(read.ok()?.ok()?.remove(0))
    };
    let func = whole("")?;
    let Some(inst) = find(&func, text) else { return Some(func) };
    for (index, &result) in func.dfg.inst_results(inst).iter().enumerate() {
        let at = 64 + 16 * index;
        let (name, ty) = (&names[index], func.dfg.value_type(result).to_string());
        // Base machines store words only.
        let (from, to) = (50 + 2 * index, 51 + 2 * index);
        let line = match (ty.as_str(), word) {
            ("i8" | "i16", _) | ("i32", "i64") => {
                format!("v{from} = uextend.{word} {name}\nstore aligned v{from}, v0+{at}")
            }
            ("f32", "i64") => format!(
                "v{from} = bitcast.i32 {name}\nv{to} = uextend.i64 v{from}\nstore aligned v{to}, v0+{at}"
            ),
            _ => format!("store aligned {name}, v0+{at}"),
        };
        let _ = writeln!(stores, "{line}");
    }
    if ends { Some(func) } else { whole(&stores) }
}

/// The instruction whose text begins with `text`.
fn find(func: &Function, text: &str) -> Option<cranelift_codegen::ir::Inst> {
    let opcode = text.split([' ', '.']).next()?;
    let block = func.layout.entry_block()?;
    let is_it = |&inst: &_| func.dfg.insts[inst].opcode().to_string() == opcode;
    func.layout.block_insts(block).rev().find(is_it)
}

/// The forms of an instruction: types of operands and text.
fn forms(opcode: Opcode) -> Vec<(Vec<&'static str>, String)> {
    let mut forms = Vec::new();
    let mut add = |operands: &[&'static str], text: String| forms.push((operands.to_vec(), text));
    let each = TYPES;
    match opcode.format() {
        InstructionFormat::Unary => {
            for from in each {
                add(&[from], format!("{opcode} v1"));
                for to in each {
                    add(&[from], format!("{opcode}.{to} v1"));
                    if opcode == Opcode::Bitcast {
                        add(&[from], format!("{opcode}.{to} little v1"));
                    }
                }
            }
        }
        InstructionFormat::Binary => {
            for ty in each {
                add(&[ty, ty], format!("{opcode} v1, v2"));
                add(&[ty, "i32"], format!("{opcode} v1, v2"));
                add(&[ty, "i8"], format!("{opcode} v1, v2"));
            }
        }
        InstructionFormat::Ternary => {
            for ty in each {
                add(&[ty, ty, ty], format!("{opcode} v1, v2, v3"));
                add(&["i8", ty, ty], format!("{opcode} v1, v2, v3"));
                add(&["i32", ty, ty], format!("{opcode} v1, v2, v3"));
                add(&[ty, ty, "i8"], format!("{opcode} v1, v2, v3"));
            }
        }
        InstructionFormat::IntCompare => {
            for (ty, cc) in each.iter().flat_map(|ty| IntCC::all().iter().map(move |cc| (*ty, cc)))
            {
                add(&[ty, ty], format!("{opcode} {cc} v1, v2"));
            }
        }
        InstructionFormat::FloatCompare => {
            for (ty, cc) in
                each.iter().flat_map(|ty| FloatCC::all().iter().map(move |cc| (*ty, cc)))
            {
                add(&[ty, ty], format!("{opcode} {cc} v1, v2"));
            }
        }
        InstructionFormat::Load | InstructionFormat::LoadNoOffset => {
            for ty in each {
                for flags in [
                    "",
                    "aligned",
                    "big",
                    "little notrap aligned",
                    "notrap aligned can_move readonly",
                    "user1 aligned",
                ] {
                    add(&[], format!("{opcode}.{ty} {flags} v0"));
                    for offset in ["+2147483647", "-2147483648", "+7"] {
                        add(&[], format!("{opcode}.{ty} {flags} v0{offset}"));
                    }
                    add(&[], format!("{opcode} {flags} v0"));
                }
            }
        }
        InstructionFormat::Store | InstructionFormat::StoreNoOffset => {
            for ty in each {
                for flags in ["", "aligned", "big", "little notrap aligned", "user1 aligned"] {
                    add(&[ty], format!("{opcode}.{ty} {flags} v1, v0"));
                    for offset in ["+2147483647", "-2147483648", "+7"] {
                        add(&[ty], format!("{opcode}.{ty} {flags} v1, v0{offset}"));
                    }
                }
            }
        }
        InstructionFormat::UnaryImm => {
            for (ty, imm) in [
                ("i8", "-1"),
                ("i8", "255"),
                ("i8", "-128"),
                ("i16", "65535"),
                ("i32", "-2147483648"),
                ("i32", "0x7fff_ffff"),
                ("i32", "0xffff_ffff"),
                ("i64", "-1"),
                ("i64", "0x8000_0000_0000_0000"),
                ("i64", "0x1234_5678_9abc_def0"),
            ] {
                add(&[], format!("{opcode}.{ty} {imm}"));
            }
        }
        InstructionFormat::UnaryIeee16
        | InstructionFormat::UnaryIeee32
        | InstructionFormat::UnaryIeee64 => {
            for imm in ["0.0", "-0.0", "+Inf", "+NaN", "-NaN:0x1", "0x1.8p3"] {
                add(&[], format!("{opcode} {imm}"));
            }
        }
        InstructionFormat::UnaryConst => {
            for ty in each {
                add(&[], format!("{opcode}.{ty} const0"));
            }
            add(&[], format!("{opcode} const0"));
        }
        InstructionFormat::UnaryGlobalValue => {
            for ty in each {
                add(&[], format!("{opcode}.{ty} gv0"));
            }
        }
        InstructionFormat::BinaryImm8 => {
            for ty in each {
                add(&[ty], format!("{opcode} v1, 1"));
            }
        }
        InstructionFormat::TernaryImm8 => {
            for (ty, lane) in [("i8x16", "i8"), ("i32x4", "i32"), ("f64x2", "f64")] {
                add(&[ty, lane], format!("{opcode} v1, v2, 1"));
            }
        }
        InstructionFormat::Shuffle => {
            add(
                &["i8x16", "i8x16"],
                format!("{opcode} v1, v2, 0x000102030405060708090a0b0c0d0e0f"),
            );
        }
        InstructionFormat::MultiAry => {
            add(&[], "return".to_owned());
        }
        InstructionFormat::NullAry => {
            add(&[], opcode.to_string());
            for ty in each {
                add(&[], format!("{opcode}.{ty}"));
            }
        }
        InstructionFormat::Jump => add(&["i32"], "jump block3(v1)".to_owned()),
        InstructionFormat::Brif => {
            for ty in each {
                add(&[ty], "brif v1, block1, block2".to_owned());
                add(&[ty], "brif v1, block1, block1".to_owned());
            }
            add(&["i32", "i32"], "brif v1, block3(v1), block3(v2)".to_owned());
        }
        InstructionFormat::BranchTable => {
            for ty in each {
                add(&[ty], "br_table v1, block1, []".to_owned());
                add(&[ty], "br_table v1, block1, [block2, block3(v1), block1]".to_owned());
            }
        }
        InstructionFormat::Call => {
            add(&["i32"], format!("{opcode} fn0(v1)"));
            add(&["i32"], format!("{opcode} fn3(v1)"));
        }
        InstructionFormat::CallIndirect => {
            add(&["i32", "i32"], format!("{opcode} sig0, v1(v2)"));
            add(&["i64", "i32"], format!("{opcode} sig0, v1(v2)"));
            add(&["i32", "i32"], format!("{opcode} sig2, v1(v2)"));
            add(&["i64", "i32"], format!("{opcode} sig2, v1(v2)"));
        }
        InstructionFormat::TryCall => {
            add(&["i32"], "try_call fn2(v1), sig1, block3(ret0), [ default: block2 ]".to_owned());
        }
        InstructionFormat::TryCallIndirect => {
            for ty in ["i32", "i64"] {
                add(
                    &[ty, "i32"],
                    "try_call_indirect v1(v2), sig1, block3(ret0), [ default: block2 ]".to_owned(),
                );
            }
        }
        InstructionFormat::FuncAddr => {
            for ty in each {
                add(&[], format!("{opcode}.{ty} fn0"));
            }
        }
        InstructionFormat::StackAddr => {
            for ty in each {
                add(&[], format!("{opcode}.{ty} ss0+8"));
            }
        }
        InstructionFormat::DynamicStackAddr => {
            for ty in each {
                add(&[], format!("{opcode}.{ty} dss0"));
            }
        }
        InstructionFormat::Trap => {
            for code in ["user1", "int_ovf", "int_divz", "heap_oob", "stk_ovf", "user250"] {
                add(&[], format!("trap {code}"));
            }
        }
        InstructionFormat::CondTrap => {
            for ty in each {
                add(&[ty], format!("{opcode} v1, user3"));
            }
        }
        InstructionFormat::IntAddTrap => {
            for ty in each {
                add(&[ty, ty], format!("{opcode} v1, v2, user3"));
            }
        }
        InstructionFormat::AtomicCas => {
            for ty in each {
                add(&[ty, ty], format!("{opcode}.{ty} v0, v1, v2"));
            }
        }
        InstructionFormat::AtomicRmw => {
            for ty in each {
                for op in [
                    "add", "sub", "and", "nand", "or", "xor", "xchg", "umin", "umax", "smin",
                    "smax",
                ] {
                    add(&[ty], format!("{opcode}.{ty} {op} v0, v1"));
                }
            }
        }
        InstructionFormat::ExceptionHandlerAddress => {
            for ty in ["i32", "i64"] {
                add(&[], format!("{opcode}.{ty} block1, 0"));
            }
        }
    }
    forms
}

#[test]
fn every_opcode_compiles_or_is_refused_by_name() {
    // Panics are caught and reported below; those of the reader are its own.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut bad = Vec::new();
    let mut never = Vec::new();
    let mut good = BTreeSet::new();
    let mut count = 0;
    for &opcode in Opcode::all() {
        let mut accepted = false;
        for arch_name in ARCHS {
            let arch: ArchId = arch_name.parse().unwrap();
            for (operands, text) in forms(opcode) {
                let results = opcode
                    .constraints()
                    .num_fixed_results()
                    .max(usize::from(matches!(opcode, Opcode::Call | Opcode::CallIndirect)));
                let func = kernel(arch, &operands, &text, results, opcode.is_terminator());
                let Some(func) = func else { continue };
                for opt_level in [OptLevel::None, OptLevel::Speed] {
                    for verify in [true, false] {
                        count += 1;
                        let options =
                            CompileOptions { opt_level, verify, ..CompileOptions::default() };
                        let given = func.clone();
                        let result = std::panic::catch_unwind(move || {
                            KernelSource::from_function(given, arch, &[])?
                                .compile(&options)
                                .map(|_| ())
                        });
                        match result {
                            Ok(Ok(())) => {
                                accepted = true;
                                good.insert(format!("{opcode} {arch_name}"));
                            }
                            Ok(Err(
                                CompileError::Unsupported { .. }
                                | CompileError::UnsupportedDeclaration { .. },
                            )) => accepted = true,
                            Ok(Err(CompileError::Invalid { .. })) => {}
                            Ok(Err(other)) => bad.push(format!(
                                "{arch_name} {opt_level:?} {verify} {operands:?} {text}: {other}"
                            )),
                            Err(panic) => {
                                let said = panic.downcast_ref::<String>();
                                bad.push(format!(
                                    "{arch_name} {opt_level:?} {verify} {operands:?} {text}: panic {said:?}"
                                ));
                            }
                        }
                    }
                }
            }
        }
        if !accepted {
            never.push(opcode.to_string());
        }
    }
    std::panic::set_hook(hook);
    assert!(bad.is_empty(), "{} of {count}:\n{}", bad.len(), bad.join("\n"));
    // The sweep reaches the compiler: most opcodes are well-formed in some form, many compile.
    assert!(never.len() < Opcode::all().len() / 4, "never accepted: {never:?}");
    assert!(good.len() > Opcode::all().len(), "{good:?}");
}
