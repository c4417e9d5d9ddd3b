//! Modules: data, function pointers in it, the stack's limit, the reach of calls, and kernels that call
//! functions.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::fmt::Write as _;

use cranelift_codegen::ir::{AbiParam, Function, types};
use harp_isa::ArchId;
use harp_jit::{
    CompileError, CompileOptions, DataAccess, DataDescription, FuncId, Linkage, Module, ModuleError,
};
use harp_runtime::Program;
use harp_tests::functions::{name, parse, single_lane};

mod data;
mod kernels;
mod reach;
mod stack;
mod warps;

const ARCHS: [&str; 6] =
    ["4w8/2/4/4", "harp32", "harp64", "4w64/64/4/4", "8b32/32/8/8", "4w32/16/8/8+x"];

fn archs() -> impl Iterator<Item = ArchId> {
    ARCHS.into_iter().map(|id| id.parse().unwrap())
}

fn word_bytes(arch: ArchId, values: &[i64]) -> Box<[u8]> {
    let bytes = usize::from(arch.word().bytes());
    values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(bytes)).collect()
}

/// Adds functions of CLIF text to a module in which their names may be declared already.
fn define(module: &mut Module, functions: &[Function]) {
    let mut ids = Vec::new();
    for func in functions {
        let name = name(func);
        ids.push(module.declare_function(&name, Linkage::Local, &func.signature).unwrap());
    }
    for (id, func) in ids.into_iter().zip(functions) {
        module.define_function(id, func).unwrap();
    }
}

const DEEP: &str = "function %leaf(word) -> word {
    block0(v0: word):
        v1 = iadd v0, v0
        return v1
    }
    function %deep(word) -> word {
        ss0 = explicit_slot SLOT
        fn0 = %deep(word) -> word
        fn1 = %leaf(word) -> word
    block0(v0: word):
        v9 = stack_addr.word ss0
        store notrap aligned v0, v9
        brif v0, block1, block2
    block1:
        v1 = iconst.word -1
        v2 = iadd v0, v1
        v3 = call fn0(v2)
        v4 = load.word notrap aligned v9
        v5 = call fn1(v4)
        v6 = iadd v3, v5
        return v6
    block2:
        return v0
    }";

/// A function of `count` operations that the mid-end cannot fold, on `v0`.
fn filler(name: &str, count: usize) -> String {
    let mut text = format!("function %{name}(word) -> word {{\nblock0(v0: word):\n");
    for i in 0..count {
        let op = ["iadd", "bxor", "imul"][i % 3];
        let _ = writeln!(text, "v{} = {op} v{i}, v0", i + 1);
    }
    let _ = writeln!(text, "return v{count}\n}}");
    text
}

#[test]
fn what_modules_refuse() {
    let arch = ArchId::HARP32;
    let mut module = Module::new(arch, single_lane());
    let functions = parse(arch.word(), "function %f() {\nblock0:\nreturn\n}");
    let signature = &functions[0].signature;
    for name in ["", "a\0b", "runtime.kernel"] {
        let error = module.declare_function(name, Linkage::Local, signature).unwrap_err();
        assert!(matches!(error, ModuleError::Name { .. }), "{error}");
    }
    let f = module.declare_function("f", Linkage::Local, signature).unwrap();
    let imported = module.declare_function("imported", Linkage::Import, signature).unwrap();
    let mut other = signature.clone();
    other.params.push(AbiParam::new(types::I32));
    let error = module.declare_function("f", Linkage::Local, &other).unwrap_err();
    assert!(matches!(error, ModuleError::Declaration { signatures: Some(_), .. }), "{error}");
    let error = module.declare_data("f", Linkage::Local, DataAccess::ReadOnly).unwrap_err();
    assert!(matches!(error, ModuleError::Declaration { signatures: None, .. }), "{error}");
    let error = module.define_function(imported, &functions[0]).unwrap_err();
    assert!(matches!(error, ModuleError::Imported { .. }), "{error}");
    module.define_function(f, &functions[0]).unwrap();
    let error = module.define_function(f, &functions[0]).unwrap_err();
    assert!(matches!(error, ModuleError::Duplicate { .. }), "{error}");
    let data = module.declare_data("d", Linkage::Export, DataAccess::ReadOnly).unwrap();
    let mut description = DataDescription::new();
    assert!(matches!(module.define_data(data, &description), Err(ModuleError::NoContents { .. })));
    description.define_zeroinit(6);
    let reference = module.declare_func_in_data(f, &mut description);
    description.write_function_addr(4, reference);
    let error = module.define_data(data, &description).unwrap_err();
    assert!(matches!(error, ModuleError::Data { given: 4, limit: Some(2), .. }), "{error}");
    let foreign = FuncId::from_u32(77);
    let error = module.define_function(foreign, &functions[0]).unwrap_err();
    assert!(matches!(error, ModuleError::Undeclared { .. }), "{error}");
    let error = module.finish().unwrap_err();
    assert_eq!(error, ModuleError::Undefined { names: vec!["d".to_owned()] });

    let options = CompileOptions { stack_bytes: 3000, ..single_lane() };
    let error = harp_jit::Compiler::new(arch, options).compile_function(&functions[0]).unwrap_err();
    assert!(matches!(error, CompileError::StackBytes { given: 3000, .. }), "{error}");
}

/// Boot code, calls near and far, frames and checks of the stack in base instructions, in forms that all
/// machines agree on; and addresses among the code are not taken for instructions.
#[test]
fn programs_for_base_machines_are_base_images() {
    for arch in archs().filter(|arch| !arch.has_extension()) {
        let text = DEEP.replace("SLOT", "48")
            + &filler("middle", 1500)
            + "function %f(word) -> word {
                gv0 = symbol %number
                fn0 = %deep(word) -> word
            block0(v0: word):
                v1 = symbol_value.word gv0
                v2 = load.word notrap aligned v1
                v3 = call fn0(v2)
                return v3
            }";
        let functions = parse(arch.word(), &text);
        let mut module = Module::new(arch, single_lane());
        let number = module.declare_data("number", Linkage::Local, DataAccess::ReadOnly).unwrap();
        let mut data = DataDescription::new();
        data.define(word_bytes(arch, &[-9]));
        module.define_data(number, &data).unwrap();
        define(&mut module, &functions);
        let module = module.finish().unwrap();
        let program = Program::new(&module, "f", &functions[3].signature).unwrap();
        let (violations, seen) = harp_tests::base_forms::violations(&program.image(&[0]).unwrap());
        assert!(violations.is_empty() && seen > 1500, "{arch}: {violations:?}");
    }
}
