//! Votes, with extension X and with base instructions.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32};
use cranelift_codegen::ir::{AbiParam, ExtFuncData, ExternalName, Signature};
use cranelift_codegen::isa::CallConv;
use harp_bench::array::Array;
use harp_jit::{ArchId, Kernel, KernelBuilder, KernelSource, ParamType};
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig};
use harp_tests::functions::checked;

/// `out[i]` = whether the number of a work-item in the warp of `i` is `wanted`.
fn kernel(arch: ArchId) -> Kernel {
    let mut source = KernelSource::new("vote", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (out, wanted) = (b.param(ParamType::Pointer), b.param(ParamType::I32));
    let i = b.global_id(0);
    let mut signature = Signature::new(CallConv::Fast);
    signature.params.push(AbiParam::new(I8));
    signature.returns.push(AbiParam::new(I8));
    let signature = b.inner().import_signature(signature);
    let any = b.inner().import_function(ExtFuncData {
        name: ExternalName::testcase("harp_any"),
        signature,
        colocated: true,
        patchable: false,
    });
    let word = b.word_int();
    let wanted = if word == I32 { wanted } else { b.ins().sextend(word, wanted) };
    let here = b.ins().icmp(IntCC::Equal, i, wanted);
    let vote = b.ins().call(any, &[here]);
    let vote = b.inner().inst_results(vote)[0];
    let (eight, two) = (b.ins().iconst(word, 8), b.ins().iconst(word, 2));
    let result = b.create_block();
    b.append_block_param(result, word);
    // Uniform in each warp: a plain branch.
    b.ins().brif(vote, result, &[eight.into()], result, &[two.into()]);
    b.switch_to_block(result);
    let value = b.block_params(result)[0];
    b.store_elem(value, out, i);
    b.return_();
    b.finalize().unwrap();
    source.compile(&checked()).unwrap()
}

#[test]
fn any_holds_in_the_warp_of_the_lane_that_says_so() {
    for arch in ["harp32", "harp64", "4w8/2/8/2", "harp64+x", "4w16/4/4/3+x", "4b16/4/1/2"] {
        let arch: ArchId = arch.parse().unwrap();
        let (lanes, len) = (usize::from(arch.lanes()), 70);
        let kernel = kernel(arch);
        let mut config = DeviceConfig::new(arch);
        config.cores = 2;
        let device = Device::new(config).unwrap();
        for wanted in [0, 1, 37, 69, 70] {
            let out = Array::of_ints(&device, &vec![0; len]).unwrap();
            let args = [out.arg(), Arg::from(wanted)];
            device.launch(&kernel, LaunchConfig::grid_1d(len), &args).unwrap();
            let expected: Vec<u32> = (0..len)
                .map(|i| if i / lanes == wanted as usize / lanes && wanted < 70 { 8 } else { 2 })
                .collect();
            assert_eq!(out.words(&device).unwrap(), expected, "{wanted} on {arch}");
        }
    }
}
