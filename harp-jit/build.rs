//! Compiles the instruction selection rules (ISLE) to Rust.
//!
//! Two inputs are generated first: Cranelift's extractors for CLIF instructions, and the list of
//! HARP opcodes, which comes from the instruction table.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use cranelift_isle::codegen::CodegenOptions;

/// The rule files in `src/isel`, in the order in which they are read.
const RULES: &[&str] = &[
    "prelude.isle",
    "inst.isle",
    "lower.isle",
    "integer.isle",
    "compare.isle",
    "float.isle",
    "float_compare.isle",
    "memory.isle",
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    cranelift_codegen_meta::generate_isle(&out).map_err(|e| format!("CLIF extractors: {e:?}"))?;
    let opcodes = out.join("opcodes.isle");
    fs::write(&opcodes, opcode_enum())?;

    let source = Path::new("src").join("isel");
    let mut inputs = vec![source.join(RULES[0]), opcodes, out.join("clif_lower.isle")];
    inputs.extend(RULES[1..].iter().map(|file| source.join(file)));
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", source.display());

    let options = CodegenOptions {
        exclude_global_allow_pragmas: true,
        prefixes: Vec::new(),
        emit_logging: false,
        split_match_arms: false,
        match_arm_split_threshold: None,
    };
    let code = cranelift_isle::compile::from_files(&inputs, &options)
        .map_err(|errors| format!("instruction selection rules:\n{errors}"))?;
    fs::write(out.join("isle.rs"), code)?;
    Ok(())
}

/// The ISLE type of HARP's opcodes, `MachOp`.
fn opcode_enum() -> String {
    let mut text = String::from("(type MachOp extern (enum\n");
    for opcode in harp_isa::Opcode::ALL {
        let _ = writeln!(text, "    {}", opcode.variant_name());
    }
    text.push_str("))\n");
    text
}
