//! What code looks like. That it is right is tested against an
//! interpreter elsewhere; these texts are for people, and to notice when code gets longer.

use expect_test::Expect;
use harp_jit::{ArchId, CompileOptions, CompiledModule, Execution, Linkage, Module};

mod control;
mod floats;
mod integers;
mod memory;

/// A module with one function for a single lane.
fn compiled(arch: &str, text: &str) -> CompiledModule {
    let arch: ArchId = arch.parse().unwrap();
    let options = CompileOptions { execution: Execution::SingleLane, ..CompileOptions::default() };
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    let mut module = Module::new(arch, options);
    let id = module.declare_function("f", Linkage::Export, &func.signature).unwrap();
    module.define_function(id, &func).unwrap();
    module.finish().unwrap()
}

fn code(arch: &str, text: &str) -> String {
    compiled(arch, text).function("f").unwrap().disassembly()
}

/// Instructions of the function and, behind a plus, of the library routine that it calls.
fn size(arch: &str, text: &str) -> String {
    let module = compiled(arch, text);
    let sizes = module.functions().iter().map(|f| f.disassembly().lines().count().to_string());
    sizes.collect::<Vec<_>>().join("+")
}

/// The label comes first because the expected texts' common indentation does not count.
fn check(arch: &str, text: &str, wanted: Expect) {
    wanted.assert_eq(&format!("f:\n{}", code(arch, text)));
}
