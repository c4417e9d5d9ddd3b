//! The cache of compiled kernels, over the public interface.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Barrier};

use harp_runtime::jit::{BranchProfile, DivergenceStrategy, OptLevel};
use harp_runtime::prelude::*;
use harp_runtime::{CacheStats, Checks, TrapSite};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Where the parts of a file begin.
const VERSION: usize = 8;
const KEY: usize = 12;
const HASH: usize = 44;
const CONTENTS: usize = 76;

fn named(name: &str, arch: ArchId, build: impl FnOnce(&mut KernelBuilder<'_>)) -> KernelSource {
    let mut source = KernelSource::new(name, arch);
    let mut b = KernelBuilder::new(&mut source);
    build(&mut b);
    b.return_();
    b.finalize().unwrap();
    source
}

fn source(build: impl FnOnce(&mut KernelBuilder<'_>)) -> KernelSource {
    named("k", ArchId::HARP32, build)
}

/// A kernel that adds `number` to each element.
fn adder(number: i64) -> KernelSource {
    source(|b| {
        let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
        let x = b.load(data, i);
        let sum = b.ins().iadd_imm_s(x, number);
        b.store(data, i, sum);
    })
}

/// What three elements are after a launch of the kernel.
fn launched(kernel: &Kernel) -> Vec<i32> {
    let device = Device::new(DeviceConfig::new(kernel.arch())).unwrap();
    let data = device.buffer_from_slice(&[1, 2, 3]).unwrap();
    device.launch(kernel, LaunchConfig::grid_1d(3), &[Arg::from(&data)]).unwrap();
    device.read(&data).unwrap()
}

fn options() -> CompileOptions {
    CompileOptions::default()
}

/// Compiled, from memory, from disk, failed, rejected, disk errors.
fn counts(cache: &CodeCache) -> [u64; 6] {
    let CacheStats { compiled, from_memory, from_disk, failed, rejected, disk_errors, .. } =
        cache.stats();
    [compiled, from_memory, from_disk, failed, rejected, disk_errors]
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_kernel_is_compiled_once() {
    let cache = CodeCache::default();
    let first = cache.compile(&adder(5), &options()).unwrap();
    let second = cache.compile(&adder(5), &options()).unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(launched(&second), [6, 7, 8]);
    assert_eq!(counts(&cache), [1, 1, 0, 0, 0, 0]);
}

#[test]
fn another_cache_loads_what_is_on_disk() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path().join("not/yet/there");
    let first = CodeCache::on_disk(&folder);
    let compiled = first.compile(&adder(5), &options()).unwrap();
    assert_eq!(counts(&first), [1, 0, 0, 0, 0, 0]);
    let second = CodeCache::on_disk(&folder);
    let loaded = second.compile(&adder(5), &options()).unwrap();
    assert!(Arc::ptr_eq(&loaded, &second.compile(&adder(5), &options()).unwrap()));
    assert_eq!(counts(&second), [0, 1, 1, 0, 0, 0]);
    assert_eq!(loaded.disassembly(), compiled.disassembly());
    assert_eq!(launched(&loaded), [6, 7, 8]);
    // Nothing else is left in the folder.
    let [file] = files(&folder).try_into().unwrap();
    assert_eq!(file.extension().unwrap(), "harpcode");
}

/// The test runs itself in another process, which finds what this one has written.
#[test]
fn another_process_loads_what_is_on_disk() {
    const FOLDER: &str = "HARP_TEST_CACHE";
    let kernel = named("k", "harp64+x".parse().unwrap(), rich);
    if let Some(folder) = std::env::var_os(FOLDER) {
        let cache = CodeCache::on_disk(folder);
        cache.compile(&kernel, &options()).unwrap();
        assert_eq!(counts(&cache), [0, 0, 1, 0, 0, 0]);
        return;
    }
    let folder = TempDir::new().unwrap();
    CodeCache::on_disk(folder.path()).compile(&kernel, &options()).unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "cache::another_process_loads_what_is_on_disk"]);
    let output = other.env(FOLDER, folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn what_differs_in_anything_is_another_kernel() {
    let arch = ArchId::HARP32;
    let plain = |b: &mut KernelBuilder<'_>| {
        let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
        let x = b.load(data, i);
        b.assert(x, "not zero");
        b.print("x is {}", &[x]);
    };
    let mut sources = vec![source(plain), named("other", arch, plain)];
    let other_archs = ["harp64", "harp32+x", "4w8/8/8/16", "4w8/8/16/8", "4b8/8/16/16"];
    sources.extend(other_archs.map(|arch| named("k", arch.parse().unwrap(), plain)));
    // The same but for one thing each, also the name of a parameter, texts, and places in the source.
    sources.push(source(|b| {
        let (data, i) = (b.buffer::<i32>("numbers"), b.global_id(0));
        let x = b.load(data, i);
        b.assert(x, "not zero");
        b.print("x is {}", &[x]);
    }));
    for (message, format) in [("not 0", "x is {}"), ("not zero", "x is {:x}"), ("not zero", "{}")] {
        let place_of = |b: &mut KernelBuilder<'_>| {
            let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
            let x = b.load(data, i);
            b.assert(x, message);
            b.print(format, &[x]);
        };
        sources.push(source(place_of));
    }
    for name in ["data", "numbers"] {
        sources.push(source(|b| {
            b.buffer::<f32>(name);
        }));
    }
    for size in [4, 8] {
        sources.push(source(|b| {
            b.group_buffer::<i32>("shared", size);
        }));
    }
    sources.push(source(|_| ()).with_group_bytes(100));
    sources.extend([1, 2].map(adder));
    let base = options();
    let profile = BranchProfile {
        version: BranchProfile::VERSION,
        function: "k".to_owned(),
        fingerprint: source(plain).compile(&base).unwrap().branch_fingerprint(),
        branches: Vec::new(),
    };
    let all_options = [
        base.clone(),
        CompileOptions { opt_level: OptLevel::None, ..base.clone() },
        CompileOptions { divergence: DivergenceStrategy::SplitJoin, ..base.clone() },
        CompileOptions { divergence: DivergenceStrategy::Predicate, ..base.clone() },
        CompileOptions { count_branches: true, ..base.clone() },
        CompileOptions { report_accesses: true, ..base.clone() },
        CompileOptions { check_alignment: true, ..base.clone() },
        CompileOptions { check_code: true, ..base.clone() },
        CompileOptions { convergence: true, ..base.clone() },
        CompileOptions { verify: !base.verify, ..base.clone() },
        CompileOptions { stack_bytes: 1 << 15, ..base.clone() },
        CompileOptions { assignment: Some(Arc::default()), ..base.clone() },
        CompileOptions { profile: Some(Arc::new(profile)), ..base.clone() },
    ];
    let folder = TempDir::new().unwrap();
    let cache = CodeCache::on_disk(folder.path());
    for (number, source) in (1..).zip(&sources) {
        let kernel = cache.compile(source, &base).unwrap();
        assert_eq!(counts(&cache), [number, 0, 0, 0, 0, 0], "{source:?}");
        assert_eq!((kernel.name(), kernel.arch()), (source.name(), source.arch()));
        assert_eq!(kernel.params(), source.params());
    }
    let before = sources.len() as u64;
    for (number, options) in (before..).zip(&all_options) {
        let kernel = cache.compile(&sources[0], options).unwrap();
        assert_eq!(counts(&cache)[0], number, "{options:?}");
        assert_eq!(kernel.reports_accesses(), options.report_accesses);
        assert_eq!(kernel.counters().is_some(), options.count_branches);
    }
    let all = before + all_options.len() as u64 - 1;
    assert_eq!(files(folder.path()).len() as u64, all);
    // All of them are found again.
    let again = CodeCache::on_disk(folder.path());
    let loaded: Vec<_> =
        sources.iter().map(|source| again.compile(source, &base).unwrap()).collect();
    let compiled: Vec<_> =
        sources.iter().map(|source| cache.compile(source, &base).unwrap()).collect();
    for (loaded, compiled) in loaded.iter().zip(&compiled) {
        assert_eq!(loaded.object(), compiled.object());
        assert_eq!(loaded.prints(), compiled.prints());
    }
    all_options.iter().for_each(|options| drop(again.compile(&sources[0], options).unwrap()));
    assert_eq!(counts(&again), [0, 1, all, 0, 0, 0]);
}

/// The same calls on two lines are two kernels: their traps name other places.
#[test]
fn places_in_the_source_count() {
    let here = source(|b| {
        let i = b.global_id(0);
        b.assert(i, "not the first");
    });
    let there = source(|b| {
        let i = b.global_id(0);
        b.assert(i, "not the first");
    });
    let cache = CodeCache::new();
    let [here, there] = [here, there].map(|source| {
        let kernel = cache.compile(&source, &options()).unwrap();
        let device = Device::new(DeviceConfig::new(kernel.arch())).unwrap();
        let error = device.launch(&kernel, LaunchConfig::grid_1d(2), &[]).unwrap_err();
        let LaunchError::Trap(trap) = error else { panic!("{error}") };
        trap.place.unwrap().line
    });
    assert_eq!((counts(&cache)[0], there), (2, here + 4));
}

/// Damages the file of a kernel and expects that it is compiled again, that the file was rejected, and that it is
/// there again afterwards.
fn rejected(what: &str, damage: impl FnOnce(&Path, &mut Vec<u8>)) {
    let folder = TempDir::new().unwrap();
    CodeCache::on_disk(folder.path()).compile(&adder(5), &options()).unwrap();
    let [file] = files(folder.path()).try_into().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    damage(&file, &mut bytes);
    fs::write(&file, bytes).unwrap();
    let cache = CodeCache::on_disk(folder.path());
    assert_eq!(launched(&cache.compile(&adder(5), &options()).unwrap()), [6, 7, 8], "{what}");
    assert_eq!(counts(&cache), [1, 0, 0, 0, 1, 0], "{what}");
    let cache = CodeCache::on_disk(folder.path());
    cache.compile(&adder(5), &options()).unwrap();
    assert_eq!(counts(&cache), [0, 0, 1, 0, 0, 0], "{what}");
}

/// Makes the hash right again.
fn signed(bytes: &mut [u8]) {
    let hash = Sha256::digest(&bytes[CONTENTS..]);
    bytes[HASH..CONTENTS].copy_from_slice(&hash);
}

#[test]
fn files_that_are_damaged_are_rejected() {
    rejected("empty", |_, bytes| bytes.clear());
    for length in [1, VERSION, KEY - 1, KEY, HASH - 1, HASH, CONTENTS - 1, CONTENTS, CONTENTS + 1] {
        rejected("truncated", |_, bytes| bytes.truncate(length));
    }
    rejected("half of it", |_, bytes| bytes.truncate(bytes.len() / 2));
    rejected("all but the last byte", |_, bytes| bytes.truncate(bytes.len() - 1));
    rejected("a byte behind the end", |_, bytes| bytes.push(0));
    for at in (0..CONTENTS).step_by(5) {
        rejected("a flipped bit", |_, bytes| bytes[at] ^= 1 << (at % 8));
    }
    for part in 0..10 {
        rejected("a flipped bit of the kernel", |_, bytes| {
            let at = CONTENTS + part * (bytes.len() - CONTENTS) / 10;
            bytes[at] ^= 1 << (part % 8);
        });
    }
    rejected("text", |_, bytes| *bytes = b"hello".repeat(100));
    rejected("zeros", |_, bytes| bytes.fill(0));
}

#[test]
fn files_of_something_else_are_rejected() {
    rejected("another version", |_, bytes| bytes[VERSION] += 1);
    rejected("another key", |_, bytes| bytes[KEY + 7] ^= 0x80);
    fn with_buffer(name: &str, arch: ArchId) -> KernelSource {
        named(name, arch, |b| {
            b.buffer::<i32>("data");
        })
    }
    let other = |source: KernelSource| {
        let kernel = source.compile(&options()).unwrap();
        postcard::to_stdvec(&kernel).unwrap()
    };
    let arch = ArchId::HARP32;
    let floats = source(|b| {
        b.buffer::<f32>("data");
    });
    let replaced = |what, contents: Vec<u8>| {
        rejected(what, |_, bytes| {
            bytes.truncate(CONTENTS);
            bytes.extend(contents);
            signed(bytes);
        });
    };
    replaced("no contents", Vec::new());
    replaced("contents without meaning", vec![0xff; 300]);
    replaced("another name", other(with_buffer("other", arch)));
    replaced("another machine", other(with_buffer("k", ArchId::HARP64)));
    replaced("other parameters", other(floats));
    replaced("memory of groups", other(with_buffer("k", arch).with_group_bytes(4)));
    rejected("bytes behind the kernel", |_, bytes| {
        bytes.push(7);
        signed(bytes);
    });
    // The whole file of another kernel.
    let folder = TempDir::new().unwrap();
    CodeCache::on_disk(folder.path()).compile(&adder(6), &options()).unwrap();
    let foreign = fs::read(&files(folder.path())[0]).unwrap();
    rejected("another kernel's file", |_, bytes| *bytes = foreign);
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let folder = TempDir::new().unwrap();
    CodeCache::on_disk(folder.path()).compile(&adder(5), &options()).unwrap();
    let [file] = files(folder.path()).try_into().unwrap();
    // A file with a hole: it takes no room on disk.
    File::options().write(true).open(&file).unwrap().set_len(1 << 40).unwrap();
    let cache = CodeCache::on_disk(folder.path());
    assert_eq!(launched(&cache.compile(&adder(5), &options()).unwrap()), [6, 7, 8]);
    assert_eq!(counts(&cache), [1, 0, 0, 0, 1, 0]);
    assert!(fs::metadata(&file).unwrap().len() < 1 << 20);
}

#[test]
fn a_folder_in_place_of_the_file_is_rejected() {
    let folder = TempDir::new().unwrap();
    CodeCache::on_disk(folder.path()).compile(&adder(5), &options()).unwrap();
    let [file] = files(folder.path()).try_into().unwrap();
    fs::remove_file(&file).unwrap();
    fs::create_dir_all(file.join("inside")).unwrap();
    let cache = CodeCache::on_disk(folder.path());
    assert_eq!(launched(&cache.compile(&adder(5), &options()).unwrap()), [6, 7, 8]);
    // It is in the way of the new file, too.
    assert_eq!(counts(&cache), [1, 0, 0, 0, 1, 1]);
    // The new file is not left under another name.
    assert_eq!(files(folder.path()), [file]);
}

#[test]
fn errors_of_the_disk_do_not_fail_a_compilation() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "no folder").unwrap();
    let long = folder.path().join("long".repeat(2000));
    for path in [file.clone(), file.join("below"), long] {
        let cache = CodeCache::on_disk(&path);
        let kernel = cache.compile(&adder(5), &options()).unwrap();
        assert_eq!(launched(&kernel), [6, 7, 8]);
        // Reading and writing failed.
        assert_eq!(counts(&cache), [1, 0, 0, 0, 0, 2], "{}", path.display());
        assert!(Arc::ptr_eq(&kernel, &cache.compile(&adder(5), &options()).unwrap()));
    }
    assert_eq!(fs::read(&file).unwrap(), b"no folder");

    // Who may do anything writes nevertheless.
    let locked = folder.path().join("locked");
    fs::create_dir(&locked).unwrap();
    let mut permissions = fs::metadata(&locked).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&locked, permissions.clone()).unwrap();
    let cache = CodeCache::on_disk(&locked);
    assert_eq!(launched(&cache.compile(&adder(5), &options()).unwrap()), [6, 7, 8]);
    assert_eq!(cache.stats().disk_errors, u64::from(files(&locked).is_empty()));
    #[expect(clippy::permissions_set_readonly_false, reason = "the folder is about to be removed")]
    permissions.set_readonly(false);
    fs::set_permissions(&locked, permissions).unwrap();
}

/// The test runs itself in another process, whose files can hold nothing.
#[cfg(unix)]
#[test]
fn a_full_disk_does_not_fail_a_compilation() {
    const FOLDER: &str = "HARP_TEST_FULL_CACHE";
    if let Some(folder) = std::env::var_os(FOLDER) {
        // What was cut short is not there for the next cache.
        for _ in 0..2 {
            let cache = CodeCache::on_disk(&folder);
            assert_eq!(launched(&cache.compile(&adder(5), &options()).unwrap()), [6, 7, 8]);
            assert_eq!(counts(&cache), [1, 0, 0, 0, 0, 1]);
            assert!(files(Path::new(&folder)).is_empty());
        }
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut other = Command::new("sh");
    other.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]);
    other.arg(std::env::current_exe().unwrap());
    other.args(["--exact", "cache::a_full_disk_does_not_fail_a_compilation"]);
    let output = other.env(FOLDER, folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn errors_are_not_kept() {
    let folder = TempDir::new().unwrap();
    let cache = CodeCache::on_disk(folder.path());
    // A register of Cranelift's that no machine has.
    let refused = source(|b| {
        let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
        let pinned = b.ins().get_pinned_reg(types::I32);
        b.store(data, i, pinned);
    });
    let mut unfinished = KernelSource::new("k", ArchId::HARP32);
    let wrong = CompileOptions { stack_bytes: 3, ..options() };
    for _ in 0..2 {
        let error = cache.compile(&refused, &options()).unwrap_err();
        assert!(matches!(error, CompileError::Unsupported { .. }), "{error}");
        let error = cache.compile(&unfinished, &options()).unwrap_err();
        assert!(matches!(error, CompileError::Build { .. }), "{error}");
        let error = cache.compile(&adder(5), &wrong).unwrap_err();
        assert!(matches!(error, CompileError::StackBytes { .. }), "{error}");
    }
    assert_eq!(counts(&cache), [0, 0, 0, 6, 0, 0]);
    assert!(files(folder.path()).is_empty());
    let mut b = KernelBuilder::new(&mut unfinished);
    b.return_();
    b.finalize().unwrap();
    cache.compile(&unfinished, &options()).unwrap();
    assert_eq!(counts(&cache), [1, 0, 0, 6, 0, 0]);
}

#[test]
fn threads_that_ask_at_the_same_time_compile_once() {
    const THREADS: u64 = 8;
    let folder = TempDir::new().unwrap();
    for round in 0..20 {
        let cache = match round {
            0..10 => CodeCache::new(),
            _ => CodeCache::on_disk(folder.path()),
        };
        let start = Barrier::new(THREADS as usize);
        let ask = || {
            start.wait();
            let kernels: Vec<_> = [1, 2, 3 + round / 15].map(adder).into();
            let kernels = kernels.iter().map(|source| cache.compile(source, &options()).unwrap());
            kernels.collect::<Vec<_>>()
        };
        let got: Vec<Vec<Arc<Kernel>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for kernels in &got {
            assert!(kernels.iter().zip(&got[0]).all(|(a, b)| Arc::ptr_eq(a, b)));
        }
        let CacheStats { compiled, from_memory, from_disk, .. } = cache.stats();
        let new = match round {
            0..=10 => 3,
            15 => 1,
            _ => 0,
        };
        assert_eq!((compiled, from_disk), (new, 3 - new), "round {round}");
        assert_eq!(from_memory, 3 * (THREADS - 1));
    }
}

#[test]
fn memory_holds_what_was_used_last() {
    let cache = CodeCache::new().with_capacity(2);
    let compile = |number| drop(cache.compile(&adder(number), &options()).unwrap());
    [1, 2, 1, 3, 1, 3].into_iter().for_each(compile);
    assert_eq!((counts(&cache)[..2].to_vec(), cache.stats().evicted), (vec![3, 3], 1));
    compile(2);
    assert_eq!((counts(&cache)[..2].to_vec(), cache.stats().evicted), (vec![4, 3], 2));
    let cache = CodeCache::new().with_capacity(0);
    (0..2).for_each(|_| drop(cache.compile(&adder(1), &options()).unwrap()));
    assert_eq!((counts(&cache)[..2].to_vec(), cache.stats().evicted), (vec![2, 0], 2));
}

/// A kernel that prints, checks what it assumes, diverges, and uses a group's memory.
fn rich(b: &mut KernelBuilder<'_>) {
    let (data, n) = (b.buffer::<i32>("data"), b.param(ParamType::Word));
    let shared = b.group_buffer::<i32>("shared", 16);
    let (i, own) = (b.global_id(0), b.local_id(0));
    let x = b.load(data, i);
    let odd = b.ins().band_imm_u(x, 1);
    b.if_then(odd, |b| {
        b.print("{} is odd", &[x]);
        let inside = b.ins().icmp(IntCC::UnsignedLessThan, i, n);
        b.assert(inside, "not too far");
    });
    b.store(shared, own, x);
    b.barrier();
    let x = b.load(shared, own);
    let double = b.ins().iadd(x, x);
    b.store(data, i, double);
}

/// What can be seen of a launch, as text.
fn outcome(kernel: &Kernel, config: LaunchConfig, n: usize) -> String {
    let device =
        Device::new(DeviceConfig { cores: 2, ..DeviceConfig::new(kernel.arch()) }).unwrap();
    let data = device.buffer_from_slice(&[1, 2, 3, 4, 5, 6, 7]).unwrap().named("data");
    let config = config.with_groups_1d(4);
    let result = device.launch(kernel, config, &[Arg::from(&data), Arg::from(n)]);
    let shown = match result {
        Ok(report) => format!("{}\n{:?}\n{:?}", report.printed, report.branches, report.stats),
        Err(LaunchError::Trap(trap)) => {
            assert!(matches!(trap.site, TrapSite::Kernel { .. }), "{trap}");
            let printed = &trap.printed;
            format!("{trap}\n{:?} {:?} {:?}\n{printed}", trap.place, trap.message, trap.trap_code)
        }
        Err(error) => error.to_string(),
    };
    format!("{shown}\n{:?}", device.read(&data).unwrap())
}

#[test]
fn launches_of_loaded_kernels_are_those_of_compiled_ones() {
    let folder = TempDir::new().unwrap();
    for arch in ["harp32", "harp64+x", "4w32/16/32/16+x", "4b16/16/16/8+x", "4w8/2/1/4"] {
        let arch: ArchId = arch.parse().unwrap();
        let source = named("k", arch, rich);
        let plain = options();
        for options in [
            plain.clone(),
            CompileOptions { count_branches: true, ..plain.clone() },
            CompileOptions { report_accesses: true, ..plain.clone() },
            CompileOptions {
                divergence: DivergenceStrategy::SplitJoin,
                opt_level: OptLevel::None,
                ..plain.clone()
            },
        ] {
            let cache = || CodeCache::on_disk(folder.path());
            let compiled = cache().compile(&source, &options).unwrap();
            let second = cache();
            let loaded = second.compile(&source, &options).unwrap();
            assert_eq!(counts(&second), [0, 0, 1, 0, 0, 0]);
            let grid = LaunchConfig::grid_1d(7);
            for n in [7, 3] {
                let mut configs = vec![grid, grid.with_branch_profile()];
                if options.report_accesses {
                    configs.push(grid.with_checks(Checks::all()));
                }
                for config in configs {
                    let (wanted, given) =
                        (outcome(&compiled, config, n), outcome(&loaded, config, n));
                    assert_eq!(given, wanted, "{arch} {options:?}");
                    let expected = if n == 7 { "[0] 1 is odd" } else { "not too far" };
                    assert!(given.contains(expected), "{given}");
                }
            }
        }
    }
}

/// Kernels of which anything may be wrong are launched, and nothing panics.
#[test]
fn mutated_kernels_are_launched_or_refused() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: usize| {
        // Xorshift (Marsaglia).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit as u64) as usize
    };
    let mut launched = 0;
    for (arch, report_accesses, count_branches) in [
        ("harp32", false, false),
        ("harp32", true, false),
        ("harp64+x", false, true),
        ("8w32/32/4/4+x", true, true),
        ("4b16/16/4/4+x", false, true),
    ] {
        let arch: ArchId = arch.parse().unwrap();
        let options = CompileOptions { report_accesses, count_branches, ..options() };
        let kernel = named("k", arch, rich).compile(&options).unwrap();
        let saved = postcard::to_stdvec(&kernel).unwrap();
        let device = Device::new(DeviceConfig { memory_bytes: 1 << 20, ..DeviceConfig::new(arch) });
        let device = device.unwrap();
        let data = device.buffer_from_slice(&[1, 2, 3, 4, 5, 6, 7]).unwrap();
        for _ in 0..400 {
            let mut bytes = saved.clone();
            for _ in 0..=below(2) {
                let at = below(bytes.len());
                bytes[at] ^= 1 << below(8);
            }
            let Ok(kernel) = postcard::from_bytes::<Kernel>(&bytes) else { continue };
            let config = LaunchConfig::grid_1d(7).with_groups_1d(4).with_fuel(2000);
            let args = [Arg::from(&data), Arg::from(7_usize)];
            let checked = report_accesses && below(2) == 0;
            let config = if checked { config.with_checks(Checks::all()) } else { config };
            // Any error is right.
            let result = device.launch(&kernel, config, &args);
            launched += u64::from(matches!(result, Ok(_) | Err(LaunchError::Trap(_))));
            drop(result.map_err(|error| error.to_string()));
        }
    }
    assert!(launched > 500, "{launched}");
}
