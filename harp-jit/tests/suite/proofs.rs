//! Kernels whose finished code the checker proves to keep lanes converged where they must be. Each needs
//! something from the proof that the others do not.

use cranelift_reader::parse_functions;
use harp_isa::ArchId;
use harp_jit::{CompileOptions, DivergenceStrategy, KernelSource, OptLevel, ParamType};

/// The same lanes take part in each iteration of the outer loop, by a condition that is recomputed each time;
/// what they count is the same in all of them. In the first iteration no earlier result of the condition is
/// known.
#[test]
fn a_condition_that_no_round_changes_parts_lanes_as_before() {
    let text = "function %kernel(i32) fast {
            fn0 = %harp_global_id_x() -> i32
        block0(v0: i32):
            v1 = load.i32 notrap aligned readonly can_move v0+36
            v2 = call fn0()
            v3 = iconst.i32 1
            v4 = iconst.i32 0
            jump block1(v1)
        block1(v5: i32):
            v6 = isub v5, v3
            v7 = band v2, v3
            v8 = icmp ne v7, v4
            brif v8, block2(v6), block3
        block2(v9: i32):
            v10 = isub v9, v3
            v11 = icmp sle v10, v4
            brif v11, block1(v10), block2(v10)
        block3:
            return
        }";
    let strategies = [DivergenceStrategy::SplitJoin, DivergenceStrategy::Predicate];
    for arch in ["4b64/64/64/1+x", "4w8/8/2/2", "4w16/16/8/4+x"] {
        let arch: ArchId = arch.parse().unwrap();
        let func = parse_functions(text).unwrap().remove(0);
        let source = KernelSource::from_function(func, arch, &[ParamType::I32]).unwrap();
        for divergence in strategies {
            for opt_level in [OptLevel::None, OptLevel::Speed] {
                let options = CompileOptions {
                    divergence,
                    opt_level,
                    check_code: true,
                    ..CompileOptions::default()
                };
                source.compile(&options).unwrap();
            }
        }
    }
}
