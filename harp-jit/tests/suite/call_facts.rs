//! Tests of facts that cross calls in a module, by the divergent branches of its functions.

use harp_jit::ir::Function;
use harp_jit::prelude::*;
use harp_jit::{DataAccess, DataDescription, FuncId, Linkage, Module, ModuleError};

/// The callee under test: `callee(n, x)` branches on `n`, and returns `n` and `x`.
const CALLEE: &str = "
block0(v0: i32, v1: i32):
    brif v0, block1, block2
block1:
    v2 = iconst.i32 7
    return v2, v1
block2:
    return v0, v1";

/// Calls it with a uniform value and a lane's number, and branches on each result.
const CALLER: &str = "
    v1 = call fn1()
    v2, v3 = call fn0(v0, v1)
    brif v2, block1, block2
block1:
    call fn2(v2)
    jump block2
block2:
    brif v3, block3, block4
block3:
    call fn2(v3)
    jump block4
block4:
    return";

/// The finished code is proved, too, with what functions know of each other.
fn module() -> Module {
    let options = CompileOptions { check_code: true, ..CompileOptions::default() };
    Module::new("harp32".parse().unwrap(), options)
}

struct Program {
    module: Module,
    callee: (FuncId, Function),
    caller: (FuncId, Function),
}

fn parsed(text: &str) -> Function {
    cranelift_reader::parse_functions(text).unwrap().remove(0)
}

/// `argument` computes the first argument.
fn program(linkage: Linkage, argument: &str) -> Program {
    let mut module = module();
    let callee = parsed(&format!("function %callee(i32, i32) -> i32, i32 fast {{{CALLEE}\n}}"));
    let callee_id = module.declare_function("callee", linkage, &callee.signature).unwrap();
    let text = format!(
        "function %caller() fast {{
            fn0 = u0:{callee_id} (i32, i32) -> i32, i32 fast
            fn1 = %harp_lane_id() -> i32
            fn2 = %use(i32) fast
        block0:
            {argument}{CALLER}
        }}",
        callee_id = callee_id.as_u32()
    );
    let caller = parsed(&text);
    let caller_id = module.declare_function("caller", Linkage::Export, &caller.signature).unwrap();
    Program { module, callee: (callee_id, callee), caller: (caller_id, caller) }
}

impl Program {
    fn analyze(&mut self) {
        let functions = [(self.callee.0, &self.callee.1), (self.caller.0, &self.caller.1)];
        self.module.analyze_calls(&functions, &[]).unwrap();
    }

    /// The numbers of divergent branches of callee and caller.
    fn divergent(&self) -> [usize; 2] {
        [&self.callee, &self.caller].map(|(id, func)| {
            let compiled = self.module.compile(*id, func, &harp_jit::SourceMap::new()).unwrap();
            compiled.stats().divergent_branches
        })
    }
}

const UNIFORM: &str = "v0 = iconst.i32 3";

#[test]
fn arguments_flow_down_and_results_up() {
    let mut program = program(Linkage::Local, UNIFORM);
    assert_eq!(program.divergent(), [1, 2]);
    program.analyze();
    assert_eq!(program.divergent(), [0, 1]);
}

#[test]
fn of_exported_functions_only_results_are_known() {
    let mut program = program(Linkage::Export, UNIFORM);
    program.analyze();
    assert_eq!(program.divergent(), [1, 1]);
}

#[test]
fn one_divergent_call_is_enough() {
    let mut program = program(Linkage::Local, "v0 = call fn1()");
    program.analyze();
    assert_eq!(program.divergent(), [1, 2]);
}

#[test]
fn recursion_is_uniform_until_something_says_otherwise() {
    let mut module = module();
    let [given, mixed] = ["v1", "v3"].map(|passed| {
        parsed(&format!(
            "function %f(i32) -> i32 fast {{
                fn0 = u0:0 (i32) -> i32 fast
                fn1 = %harp_lane_id() -> i32
            block0(v0: i32):
                v6 = iconst.i32 -1
                v1 = iadd v0, v6
                v2 = call fn1()
                v3 = iadd v1, v2
                brif v0, block1, block2
            block1:
                v4 = call fn0({passed})
                v5 = imul v4, v0
                return v5
            block2:
                return v0
            }}"
        ))
    });
    let id = module.declare_function("f", Linkage::Local, &given.signature).unwrap();
    for (func, divergent) in [(&given, 0), (&mixed, 1)] {
        module.analyze_calls(&[(id, func)], &[]).unwrap();
        let compiled = module.compile(id, func, &harp_jit::SourceMap::new()).unwrap();
        assert_eq!(compiled.stats().divergent_branches, divergent);
    }
}

#[test]
fn kernels_are_callers_too() {
    let mut module = module();
    let callee = parsed(
        "function %f(i32) -> i32 fast {
        block0(v0: i32):
            brif v0, block1, block2
        block1: return v0
        block2: v1 = iconst.i32 5
            return v1
        }",
    );
    let id = module.declare_function("f", Linkage::Local, &callee.signature).unwrap();
    let kernel = |divergent: bool| {
        let mut source = KernelSource::new("k", "harp32".parse().unwrap());
        let mut b = KernelBuilder::new(&mut source);
        let (x, n) = (b.param(ParamType::Pointer), b.param(ParamType::I32));
        let i = b.global_id(0);
        let f = module.declare_func_in_func(id, b.inner().func).unwrap();
        let call = b.ins().call(f, &[if divergent { i } else { n }]);
        let result = b.inner().inst_results(call)[0];
        b.store_elem(result, x, i);
        b.return_();
        b.finalize().unwrap();
        source
    };
    let [uniform, divergent] = [kernel(false), kernel(true)];
    let branches = |module: &Module| {
        let compiled = module.compile(id, &callee, &harp_jit::SourceMap::new()).unwrap();
        compiled.stats().divergent_branches
    };
    module.analyze_calls(&[(id, &callee)], &[&uniform]).unwrap();
    assert_eq!(branches(&module), 0);
    module.compile_kernel(&uniform).unwrap();
    let error = module.compile_kernel(&divergent).unwrap_err();
    assert!(error.to_string().contains("`f`, which was analysed without this caller"), "{error}");
    module.analyze_calls(&[(id, &callee)], &[&uniform, &divergent]).unwrap();
    assert_eq!(branches(&module), 1);
    module.compile_kernel(&divergent).unwrap();
}

#[test]
fn what_was_not_analysed_is_refused() {
    let mut program = program(Linkage::Local, UNIFORM);
    program.analyze();
    let (id, caller) = (
        program.caller.0,
        parsed(
            "function %caller() fast {
            fn0 = u0:0 (i32, i32) -> i32, i32 fast
            fn1 = %use(i32) fast
        block0:
            v0 = func_addr.i32 fn0
            call fn1(v0)
            return
        }",
        ),
    );
    let sources = harp_jit::SourceMap::new();
    let error = program.module.compile(id, &caller, &sources).unwrap_err();
    assert!(matches!(error, ModuleError::Analyzed { ref name, .. } if name == "caller"), "{error}");
    let signature = program.module.make_signature();
    let id = program.module.declare_function("other", Linkage::Local, &signature).unwrap();
    let error = program.module.compile(id, &caller, &sources).unwrap_err();
    assert!(error.to_string().contains("takes the address of `callee`"), "{error}");

    let data = program.module.declare_data("table", Linkage::Local, DataAccess::ReadOnly).unwrap();
    let mut table = DataDescription::new();
    table.define(vec![0; 4].into_boxed_slice());
    let callee = program.module.declare_func_in_data(program.callee.0, &mut table);
    table.write_function_addr(0, callee);
    let error = program.module.define_data(data, &table).unwrap_err();
    assert!(matches!(error, ModuleError::Analyzed { ref name, .. } if name == "callee"), "{error}");
}

#[test]
fn functions_whose_address_is_taken_may_be_called_by_anybody() {
    let mut program = program(Linkage::Local, UNIFORM);
    let taker = parsed(
        "function %taker() -> i32 fast {
            fn0 = u0:0 (i32, i32) -> i32, i32 fast
        block0:
            v0 = func_addr.i32 fn0
            return v0
        }",
    );
    let id = program.module.declare_function("taker", Linkage::Export, &taker.signature).unwrap();
    let functions = [
        (program.callee.0, &program.callee.1),
        (program.caller.0, &program.caller.1),
        (id, &taker),
    ];
    program.module.analyze_calls(&functions, &[]).unwrap();
    assert_eq!(program.divergent(), [1, 1]);
    program.module.compile(id, &taker, &harp_jit::SourceMap::new()).unwrap();
}
