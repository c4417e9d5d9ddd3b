//! Kernels that are saved and loaded, and bytes that are no kernels.

use std::collections::BTreeSet;

use harp_jit::prelude::*;
use harp_jit::{CodeFault, DataAccess, DataDescription, FunctionCode, Linkage, Module, PrintArea};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const MACHINES: [&str; 6] =
    ["harp32", "harp64+x", "4w32/16/32/16+x", "4b16/16/16/8+x", "4w8/2/1/1", "8b32/32/8/8+x"];

fn machines() -> impl Iterator<Item = ArchId> {
    MACHINES.into_iter().map(|id| id.parse().unwrap())
}

fn source(arch: ArchId, build: impl FnOnce(&mut KernelBuilder<'_>)) -> KernelSource {
    let mut source = KernelSource::new("k", arch);
    let mut b = KernelBuilder::new(&mut source);
    build(&mut b);
    b.return_();
    b.finalize().unwrap();
    source
}

/// A kernel with divergent branches, a check with a message, lines of all formats, and memory of its group.
fn rich(b: &mut KernelBuilder<'_>) {
    let (data, n) = (b.buffer::<i32>("data"), b.param(ParamType::Word));
    let scale = b.scalar::<f64>("scale");
    let last = b.param(ParamType::Word);
    let (shared, sized) = (b.group_buffer::<i32>("shared", 16), b.group_param::<f32>("sized"));
    let (i, own) = (b.global_id(0), b.local_id(0));
    let inside = b.ins().icmp(IntCC::UnsignedLessThan, i, n);
    b.assert(inside, "below {n}");
    let x = b.load(data, i);
    let odd = b.ins().band_imm_u(x, 1);
    b.if_then(odd, |b| {
        let wide = b.ins().sextend(types::I64, x);
        let far = b.ins().iadd_imm_s(wide, 0x1234_5678_9abc);
        let float = b.ins().fcvt_from_sint(types::F32, x);
        b.print("{{odd}} {} {:x} {:u} {}", &[x, far, far, float]);
        b.store(sized, own, float);
    });
    b.store(shared, own, x);
    b.barrier();
    let y = b.load(shared, own);
    let double = b.ins().fcvt_from_sint(types::F64, y);
    let product = b.ins().fmul(double, scale);
    let y = b.ins().fcvt_to_sint_sat(types::I32, product);
    b.store(data, i, y);
    let at_end = b.ins().icmp(IntCC::Equal, i, last);
    b.if_then(at_end, |b| b.print("end", &[]));
}

/// A kernel that calls a function of a module, which reads and writes data.
fn of_module(arch: ArchId) -> Kernel {
    let mut module = Module::new(arch, CompileOptions::default());
    let mut points = DataDescription::new();
    let word = usize::from(arch.word().bytes());
    points.define(vec![7; 4 * word].into());
    points.set_align(16);
    let numbers = module.declare_data("numbers", Linkage::Local, DataAccess::ReadWrite).unwrap();
    let table = module.declare_data("table", Linkage::Export, DataAccess::ReadOnly).unwrap();
    let mut pointer = DataDescription::new();
    pointer.define(vec![0; word].into());
    let target = module.declare_data_in_data(numbers, &mut pointer);
    pointer.write_data_addr(0, target, word as i64);
    module.define_data(numbers, &points).unwrap();
    module.define_data(table, &pointer).unwrap();
    let ty = if word == 4 { "i32" } else { "i64" };
    let text = format!(
        "function %square({ty}) -> {ty} fast {{
        block0(v0: {ty}):
            trapz v0, user7
            v1 = imul v0, v0
            v2 = iconst.{ty} 0x7654321
            v3 = iadd v1, v2
            return v3
        }}"
    );
    let func = cranelift_reader::parse_functions(&text).unwrap().remove(0);
    let square = module.declare_function("square", Linkage::Local, &func.signature).unwrap();
    module.define_function(square, &func).unwrap();
    let source = source(arch, |b| {
        let (out, i) = (b.param(ParamType::Pointer), b.global_id(0));
        let [squared] = b.call(&module, square, &[i]);
        let address = b.data_address(&module, table);
        let place = b.load_elem(if word == 4 { types::I32 } else { types::I64 }, address, i);
        let sum = b.ins().iadd(squared, place);
        b.store_elem(sum, out, i);
    });
    module.compile_kernel(&source).unwrap()
}

fn kernels() -> impl Iterator<Item = Kernel> {
    machines().flat_map(|arch| {
        let options = [
            CompileOptions::default(),
            CompileOptions { count_branches: true, convergence: true, ..CompileOptions::default() },
            CompileOptions { report_accesses: true, ..CompileOptions::default() },
        ];
        let plain = source(arch, |_| ());
        let kernels = options.map(|options| source(arch, rich).compile(&options).unwrap());
        let plain = plain.compile(&CompileOptions::default()).unwrap();
        kernels.into_iter().chain([of_module(arch), plain])
    })
}

/// What can be seen of a function.
fn seen(code: &FunctionCode) -> String {
    let offsets = 0..=code.code().len() as u64;
    let at: Vec<_> = offsets
        .map(|at| (code.place_at(at), code.trap_code_at(at), code.trap_message_at(at)))
        .collect();
    let branches: Vec<_> = code.branches().collect();
    let (name, groups) = (code.name(), code.uses_groups());
    let convergence = code.convergence();
    let (text, accesses) = (code.disassembly(), code.accesses());
    let fingerprint = code.branch_fingerprint();
    format!(
        "{name} {groups} {fingerprint} {branches:?} {convergence:?} {accesses:?}\n{text}\n{at:?}"
    )
}

/// Asserts that two kernels differ in nothing but the record for the checker.
fn assert_same(a: &Kernel, b: &Kernel) {
    assert_eq!((a.name(), a.arch(), a.params()), (b.name(), b.arch(), b.params()));
    assert_eq!((a.object(), a.code(), a.stats()), (b.object(), b.code(), b.stats()));
    assert_eq!((a.counters(), a.prints()), (b.counters(), b.prints()));
    assert_eq!(a.lane_stack_bytes(), b.lane_stack_bytes());
    assert_eq!((a.uses_groups(), a.group_bytes()), (b.uses_groups(), b.group_bytes()));
    assert_eq!(a.reports_accesses(), b.reports_accesses());
    assert!(a.data().eq(b.data()));
    assert_eq!(seen(a.entry()), seen(b.entry()));
    let all = |kernel: &Kernel| kernel.functions().iter().map(seen).collect::<Vec<_>>();
    assert_eq!(all(a), all(b));
}

#[test]
fn a_loaded_kernel_is_the_same() {
    let mut kinds = BTreeSet::new();
    for kernel in kernels() {
        let saved = postcard::to_stdvec(&kernel).unwrap();
        let loaded: Kernel = postcard::from_bytes(&saved).unwrap();
        assert_same(&loaded, &kernel);
        assert_eq!(postcard::to_stdvec(&loaded).unwrap(), saved);
        let text = serde_json::to_string(&kernel).unwrap();
        assert_same(&serde_json::from_str(&text).unwrap(), &kernel);
        kinds.extend(kernel.prints().map(|_| "prints"));
        kinds.extend(kernel.counters().map(|_| "counts"));
        kinds.extend(kernel.reports_accesses().then_some("reports"));
        kinds.extend((!kernel.entry().accesses().is_empty()).then_some("accesses"));
        kinds.extend((!kernel.entry().convergence().is_empty()).then_some("convergence"));
        kinds.extend((kernel.group_bytes() > 0).then_some("group"));
        kinds.extend((kernel.stats().divergent_branches > 0).then_some("branches"));
        let names: Vec<&str> = kernel.functions().iter().map(FunctionCode::name).collect();
        kinds.extend(names.contains(&"square").then_some("function"));
        kinds.extend(names.iter().any(|name| name.starts_with("runtime.")).then_some("routine"));
        let chunks = &kernel.object().chunks;
        kinds.extend(chunks.iter().any(|chunk| chunk.name == "table").then_some("data"));
        // One of them is in two chunks.
        let word = u64::from(kernel.arch().word().bytes());
        kinds.extend(kernel.data().eq([("table", word), ("numbers", 4 * word)]).then_some("sizes"));
        let literals = chunks.iter().filter(|chunk| chunk.name == "k" && chunk.address.is_none());
        kinds.extend((literals.count() > 1).then_some("literals"));
        let has_message = |at| kernel.trap_message_at(at) == Some("below {n}");
        kinds.extend((0..kernel.code().len() as u64).any(has_message).then_some("message"));
    }
    let all = [
        "accesses",
        "branches",
        "convergence",
        "counts",
        "data",
        "function",
        "group",
        "literals",
        "message",
        "prints",
        "reports",
        "routine",
        "sizes",
    ];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), all);
}

/// Code that was exchanged is saved, too.
#[test]
fn other_code_is_saved() {
    let kernel = of_module("harp32".parse().unwrap());
    let code: Vec<u8> = kernel.functions()[0].code().iter().rev().copied().collect();
    let other = kernel.with_code(1, &code).unwrap();
    let loaded: Kernel = postcard::from_bytes(&postcard::to_stdvec(&other).unwrap()).unwrap();
    assert_same(&loaded, &other);
    assert_eq!(loaded.functions()[0].code(), code);
    assert_same(&loaded.with_code(1, kernel.functions()[0].code()).unwrap(), &kernel);
}

#[test]
fn a_loaded_kernel_has_no_record_for_the_checker() {
    let options = CompileOptions { check_code: true, ..CompileOptions::default() };
    let kernel = source(ArchId::HARP32, rich).compile(&options).unwrap();
    kernel.check().unwrap();
    let saved = postcard::to_stdvec(&kernel).unwrap();
    let error = postcard::from_bytes::<Kernel>(&saved).unwrap().check().unwrap_err();
    assert!(matches!(error.fault, CodeFault::NotRecorded), "{error}");
}

/// Calls all that a kernel has.
fn use_all(kernel: &Kernel) {
    let (text, _) = (kernel.disassembly(), kernel.check().unwrap_err());
    assert!(!text.is_empty() && !kernel.code().is_empty());
    for code in kernel.functions().iter().chain([kernel.entry()]) {
        seen(code);
    }
    assert!(kernel.lane_stack_bytes().is_power_of_two());
    let reversed: Vec<u8> = kernel.code().iter().rev().copied().collect();
    seen(kernel.with_code(0, &reversed).unwrap().entry());
    let number = kernel.functions().len();
    if let Some(last) = kernel.functions().last() {
        seen(&kernel.with_code(number, last.code()).unwrap().functions()[number - 1]);
    }
    assert!(kernel.with_code(number + 1, &[]).is_none());
    if let Some(prints) = kernel.prints() {
        let area = PrintArea { cores: 1, warps: 1, lane_bytes: 64 };
        let mut memory = vec![0; prints.bytes(area) as usize];
        let word = usize::from(kernel.arch().word().bytes());
        for (at, value) in prints.prepared(area, 0x1000) {
            memory[at as usize..][..word].copy_from_slice(&value.to_le_bytes()[..word]);
        }
        let get = |memory: &[u8], at: u64, out: &mut [u8]| {
            let start = at.wrapping_sub(0x1000) as usize;
            let found = memory.get(start..).and_then(|rest| rest.get(..out.len()));
            found.map(|found| out.copy_from_slice(found)).is_some()
        };
        prints.read(area, 0x1000, |at, out| get(&memory, at, out));
        memory.fill(0xff);
        prints.read(area, 0x1000, |at, out| get(&memory, at, out));
    }
    if let Some(counters) = kernel.counters() {
        for byte in [0, 0x7f, 0xff] {
            // A counter that is full is an error.
            let _ = counters.profile(&vec![byte; counters.bytes(2) as usize]);
        }
    }
    kernel.params().iter().for_each(|param| drop(param.to_string()));
    // The alignment of data can be anything, and then the image is too large.
    let _ = harp_isa::link(&[kernel.object()], 0);
    let again: Kernel = postcard::from_bytes(&postcard::to_stdvec(kernel).unwrap()).unwrap();
    assert_same(&again, kernel);
}

/// Whatever the bytes are, they are no kernel, or a kernel whose methods do not panic.
#[test]
fn mutated_bytes_do_not_panic() {
    let saved: Vec<Vec<u8>> =
        kernels().map(|kernel| postcard::to_stdvec(&kernel).unwrap()).collect();
    let mut random = SplitMix64::seed_from_u64(19);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..2000 {
        let mut bytes = saved[round % saved.len()].clone();
        let below =
            |random: &mut SplitMix64, limit: usize| (random.next_u64() % limit as u64) as usize;
        for _ in 0..=below(&mut random, 3) {
            let at = below(&mut random, bytes.len());
            match below(&mut random, 5) {
                0 => bytes[at] ^= 1 << below(&mut random, 8),
                1 => bytes[at] = random.next_u64() as u8,
                2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(&mut random, 5)],
                3 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[below(&mut random, bytes.len())]),
            }
            if below(&mut random, 50) == 0 {
                bytes.truncate(at.max(1));
            }
        }
        match postcard::from_bytes::<Kernel>(&bytes) {
            Ok(kernel) => {
                accepted += 1;
                use_all(&kernel);
            }
            Err(_) => refused += 1,
        }
    }
    // Both happen: many bytes are code, or parts of names.
    assert!(accepted > 200 && refused > 200, "{accepted} {refused}");
}

/// Each rule for a field, by JSON in which one value is another one.
#[test]
fn what_contradicts_itself_is_no_kernel() {
    let arch = ArchId::HARP32;
    let module = serde_json::to_value(of_module(arch)).unwrap();
    let options = CompileOptions { report_accesses: true, ..CompileOptions::default() };
    let rich = source(arch, rich).compile(&options).unwrap();
    let rich = serde_json::to_value(rich).unwrap();
    let refused = |kernel: &serde_json::Value, path: &str, value: serde_json::Value, why: &str| {
        let mut kernel = kernel.clone();
        *kernel.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value;
        let error = serde_json::from_value::<Kernel>(kernel).unwrap_err().to_string();
        assert!(error.contains(why), "{path}: {error}");
    };
    refused(&rich, "/arch", "4w99".into(), "4w99");
    refused(&rich, "/lane_stack_bytes", 768.into(), "stack");
    refused(&rich, "/lane_stack_bytes", 64.into(), "stack");
    refused(&rich, "/lane_stack_bytes", (1_u32 << 29).into(), "stack");
    refused(&rich, "/entry/bytes", Vec::<u8>::new().into(), "no code");
    refused(&rich, "/entry/places/0/0", u32::MAX.into(), "disorder");
    refused(&rich, "/entry/files", Vec::<String>::new().into(), "without a name");
    refused(&rich, "/entry/traps/0/0", 0xffff.into(), "disorder");
    refused(&rich, "/entry/traps/0/1", 0.into(), "nonzero");
    refused(&rich, "/entry/messages/0/0", 0xffff.into(), "disorder");
    refused(&rich, "/entry/branches/0/0", 0xffff.into(), "disorder");
    refused(&rich, "/entry/accesses/0/ty", "i32x4".into(), "i32x4");
    refused(&rich, "/entry/accesses/0/roots/0/Param", 99.into(), "parameter");
    refused(&rich, "/prints/0/format", "{".into(), "not a kernel");
    refused(&rich, "/prints/0/types/0", "i128".into(), "i128");
    refused(&rich, "/params/0/element", "b1".into(), "b1");
    refused(&module, "/functions/0/name", "k".into(), "same name");
    refused(&module, "/data/0", Vec::<u8>::new().into(), "no chunk");
    refused(&module, "/data/0/0/name", "k".into(), "name of a function");
    refused(&module, "/data/0/0/address", 4.into(), "bound");
    refused(&module, "/data/0/0/permissions", 8.into(), "permissions");
    refused(&module, "/entry/references/0/byte_offset", 0xffff.into(), "references");
    refused(&module, "/entry/references/0/base_offset", 0xffff.into(), "references");
    refused(&module, "/entry/references/0/byte_offset", u64::MAX.into(), "references");
    let far = serde_json::to_value([1_u32, 2]).unwrap();
    refused(&module, "/entry/literals", far, "literals");
}
