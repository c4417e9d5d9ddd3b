//! Machines whose lanes share registers: what a kernel may rely on.

use harp_isa::abi::SharedRoles;
use harp_isa::{Opcode, Operand, Sharing, disassemble};
use harp_jit::ir::Function;
use harp_jit::prelude::*;
use harp_jit::{DataAccess, DataDescription, DivergenceStrategy, FuncId, Linkage, Module};

const ARCH: &str = "4w24/12/32/16+x+s8/4";

/// A module with `plain`, `grouped`, which asks for the position in a group, and `outer`, which calls `grouped`.
struct Functions {
    module: Module,
    ids: [FuncId; 3],
}

fn parsed(text: &str) -> Function {
    cranelift_reader::parse_functions(text).unwrap().remove(0)
}

fn functions() -> Functions {
    let options = CompileOptions { verify: true, ..CompileOptions::default() };
    let mut module = Module::new(ARCH.parse().unwrap(), options);
    let bodies = [
        ("plain", "v1 = iadd v0, v0".to_owned()),
        ("grouped", "v2 = call fn0()\n v1 = iadd v0, v2".to_owned()),
        ("outer", "v1 = call fn1(v0)".to_owned()),
    ];
    let mut ids = Vec::new();
    for (name, body) in bodies {
        let grouped = ids.last().map_or(0, |id: &FuncId| id.as_u32());
        let func = parsed(&format!(
            "function %{name}(i32) -> i32 fast {{
                fn0 = %harp_local_index() -> i32
                fn1 = u0:{grouped} (i32) -> i32 fast
            block0(v0: i32):
                {body}
                return v1
            }}"
        ));
        let id = module.declare_function(name, Linkage::Export, &func.signature).unwrap();
        module.define_function(id, &func).unwrap();
        ids.push(id);
    }
    Functions { module, ids: [ids[0], ids[1], ids[2]] }
}

/// What a kernel adds.
#[derive(Clone, Copy, Debug)]
enum More {
    /// What the function with this number returns.
    Call(usize),
    /// The address of a table with the address of the function with this number.
    Table(usize),
}

/// `data[i] += more`.
fn kernel(more: More) -> Kernel {
    let Functions { mut module, ids } = functions();
    let table = module.declare_data("table", Linkage::Local, DataAccess::ReadOnly).unwrap();
    if let More::Table(number) = more {
        let mut description = DataDescription::new();
        description.define(vec![0; 4].into_boxed_slice());
        let function = module.declare_func_in_data(ids[number], &mut description);
        description.write_function_addr(0, function);
        module.define_data(table, &description).unwrap();
    }
    let mut source = KernelSource::new("sums", ARCH.parse().unwrap());
    let mut b = KernelBuilder::new(&mut source);
    let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
    let old = b.load(data, i);
    let more = match more {
        More::Call(number) => {
            let [more] = b.call(&module, ids[number], &[old]);
            more
        }
        More::Table(_) => b.data_address(&module, table),
    };
    let new = b.ins().iadd(old, more);
    b.store(data, i, new);
    b.return_();
    b.finalize().unwrap();
    module.compile_kernel(&source).unwrap()
}

/// Whether it accesses rows of memory.
fn has_rows(kernel: &Kernel) -> bool {
    let arch = kernel.arch();
    let code = disassemble(kernel.code(), 0, arch);
    code.filter_map(|(_, inst)| inst.ok()).any(|inst| inst.op.sharing(arch) == Sharing::Row)
}

/// A launch gives positions by groups to what is linked with a use of groups, and then they do not follow each other from lane to
/// lane.
#[test]
fn rows_are_for_kernels_without_groups() {
    for (number, uses_groups) in [false, true, true].into_iter().enumerate() {
        for more in [More::Call(number), More::Table(number)] {
            let kernel = kernel(more);
            assert_eq!(
                (kernel.uses_groups(), has_rows(&kernel)),
                (uses_groups, !uses_groups),
                "{more:?}"
            );
        }
    }
}

/// Values that a kernel needs after a call are in shared registers that its functions leave alone.
#[test]
fn functions_leave_registers_of_kernels_alone() {
    let kernel = kernel(More::Call(0));
    let (arch, roles) = (kernel.arch(), SharedRoles::new(kernel.arch()));
    let kept = |code: &[u8]| {
        let mut found = false;
        for (_, inst) in disassemble(code, 0, arch) {
            inst.unwrap().op.for_each_operand(|operand| {
                found |= matches!(operand, Operand::Gpr(gpr) if roles.is_of_kernel(gpr));
            });
        }
        found
    };
    assert!(kept(kernel.code()), "{}", kernel.disassembly());
    assert!(kernel.functions().iter().all(|function| !kept(function.code())));
}

/// `for (k = at; list[k] != 0; k = list[k]) data[i] += k`: all lanes walk along the list together.
fn walk(arch: &str, options: &CompileOptions) -> Kernel {
    let mut source = KernelSource::new("walk", arch.parse().unwrap());
    let mut b = KernelBuilder::new(&mut source);
    let (data, list, at) =
        (b.buffer::<i32>("data"), b.buffer::<i32>("list"), b.scalar::<i32>("at"));
    let i = b.global_id(0);
    b.loop_with([at], |b, [k]| {
        let next = b.load(list, k);
        let zero = b.ins().iconst(types::I32, 0);
        let is_last = b.ins().icmp(IntCC::Equal, next, zero);
        b.break_if(is_last);
        let old = b.load(data, i);
        let new = b.ins().iadd(old, k);
        b.store(data, i, new);
        [next]
    });
    b.return_();
    b.finalize().unwrap();
    source.compile(options).unwrap()
}

/// What is loaded once is the same for all, so a branch on it needs no split, also in code that counts its branches. Without
/// shared registers each lane may load something else.
#[test]
fn lanes_agree_on_what_is_loaded_once() {
    for (arch, is_split) in [(ARCH, false), ("4w16/8/4/2+x+s16/8", false), ("harp32", true)] {
        for count_branches in [false, true] {
            for divergence in [DivergenceStrategy::SplitJoin, DivergenceStrategy::Static] {
                let verified = CompileOptions { verify: true, ..CompileOptions::default() };
                let options = CompileOptions { count_branches, divergence, ..verified };
                let kernel = walk(arch, &options);
                let mut code = disassemble(kernel.code(), 0, kernel.arch());
                let splits =
                    code.any(|(_, inst)| inst.is_ok_and(|inst| inst.op.opcode() == Opcode::Split));
                assert_eq!(splits, is_split, "{}", kernel.disassembly());
            }
        }
    }
}
