//! Compiles the instruction selection rules (ISLE) to Rust, and writes the kernel builder's methods for
//! instructions.
//!
//! Two inputs of the rules are generated first: Cranelift's extractors for CLIF instructions, and the list of
//! HARP opcodes, which comes from the instruction table. The methods are those of Cranelift's trait
//! `InstBuilder`, whose text Cranelift generates.
//!
//! It also hashes the sources, so that caches of code know whether the code generator has changed.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use cranelift_isle::codegen::CodegenOptions;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{FnArg, Ident, Item, Pat, TraitItem, TraitItemFn, Type};

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
    println!("cargo::rustc-env=HARP_JIT_SOURCES={:016x}", hash_of_sources()?);

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

    let clif = out.join("clif");
    fs::create_dir_all(&clif)?;
    cranelift_codegen_meta::generate_rust(&[], &clif).map_err(|e| format!("CLIF: {e:?}"))?;
    let trait_text = fs::read_to_string(clif.join("inst_builder.rs"))?;
    fs::write(out.join("inst_methods.rs"), inst_methods(&trait_text)?)?;
    Ok(())
}

/// What decides about the code that is generated. The instruction set lies there only in a checkout of the
/// repository; elsewhere its sources go with its version.
const SOURCES: &[&str] = &["src", "check/src", "../harp-isa/src"];

/// A hash of the sources: FNV-1a (Fowler, Noll, Vo) over their names and contents.
fn hash_of_sources() -> Result<u64, Box<dyn Error>> {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for folder in SOURCES.iter().map(Path::new).filter(|folder| folder.is_dir()) {
        println!("cargo::rerun-if-changed={}", folder.display());
        hash_folder(folder, &mut hash)?;
    }
    Ok(hash)
}

fn hash_folder(folder: &Path, hash: &mut u64) -> Result<(), Box<dyn Error>> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_folder(&path, hash)?;
            continue;
        }
        let contents = fs::read(&path)?;
        let length = (contents.len() as u64).to_le_bytes();
        for byte in path.to_string_lossy().bytes().chain(length).chain(contents) {
            *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
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

/// The methods of the trait `InstBuilder` in `text`, one per instruction, as methods of the kernel builder's
/// own type, which check the values and flags that they get before they call the trait's method.
fn inst_methods(text: &str) -> Result<String, Box<dyn Error>> {
    let file = syn::parse_file(text)?;
    let methods = file.items.iter().find_map(|item| match item {
        Item::Trait(item) if item.ident == "InstBuilder" => Some(&item.items),
        _ => None,
    });
    let methods = methods.ok_or("the trait `InstBuilder` is not where it was")?;
    let methods = methods.iter().filter_map(|item| match item {
        // Methods of instruction formats begin with a capital and accept any opcode, so they are left out.
        TraitItem::Fn(method) if !starts_with_capital(&method.sig.ident) => Some(method),
        _ => None,
    });
    let methods = methods.map(inst_method).collect::<Result<Vec<_>, _>>()?;
    let methods = quote! {
        #[allow(deprecated, unused_qualifications, reason = "the trait's methods are written so")]
        impl<'short, 'long> KernelInstBuilder<'short, 'long> { #(#methods)* }
    };
    Ok(methods.to_string())
}

fn starts_with_capital(name: &Ident) -> bool {
    name.to_string().starts_with(|c: char| c.is_ascii_uppercase())
}

fn inst_method(method: &TraitItemFn) -> Result<TokenStream, Box<dyn Error>> {
    let (attributes, signature) = (&method.attrs, &method.sig);
    let (name, generics, output) = (&signature.ident, &signature.generics, &signature.output);
    let (mut params, mut checks, mut args) = (Vec::new(), Vec::new(), Vec::new());
    for input in &signature.inputs {
        let FnArg::Typed(param) = input else { continue };
        let Pat::Ident(pattern) = &*param.pat else {
            return Err(format!("`{name}` has a parameter without a name").into());
        };
        let arg = &pattern.ident;
        match &*param.ty {
            ty if is_value(ty) => checks.push(quote! { let #arg = self.value(#arg); }),
            Type::Reference(slice) if matches!(&*slice.elem, Type::Slice(_)) => {
                checks.push(quote! { let #arg = &self.values(#arg); });
            }
            Type::ImplTrait(_) => checks.push(quote! { let #arg = &self.block_args(#arg); }),
            _ if arg == "MemFlags" => checks.push(quote! { let #arg = self.flags(#arg.into()); }),
            _ => {}
        }
        params.push(param);
        args.push(arg);
    }
    let receiver = if checks.is_empty() {
        quote! { self }
    } else {
        quote! { mut self }
    };
    Ok(quote! {
        #(#attributes)*
        pub fn #name #generics (#receiver, #(#params),*) #output {
            #(#checks)*
            InstBuilder::#name(self.checked(), #(#args),*)
        }
    })
}

/// Whether it is the type of a CLIF value.
fn is_value(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == "Value")
}
