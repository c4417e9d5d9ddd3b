//! Forty faults: each gives its documented error with its place, and leaves the device usable.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use harp_runtime::jit::ir::condcodes::IntCC;
use harp_runtime::jit::ir::{StackSlotData, StackSlotKind, TrapCode};
use harp_runtime::prelude::*;
use harp_runtime::{Checks, Queue, Replay};
use tempfile::TempDir;

/// 4 warps of 8 lanes.
const ARCH: &str = "4w32/16/8/4+x";

struct Fault {
    name: &'static str,
    /// What the error says.
    expected: &'static [&'static str],
    run: fn(&Device) -> String,
}

fn built(
    name: &str,
    arch: &str,
    reports: bool,
    build: impl FnOnce(&mut KernelBuilder<'_>),
) -> Kernel {
    let mut source = KernelSource::new(name, arch.parse().unwrap());
    let mut b = KernelBuilder::new(&mut source);
    build(&mut b);
    b.return_();
    b.finalize().unwrap();
    let options = CompileOptions { report_accesses: reports, ..CompileOptions::default() };
    source.compile(&options).unwrap()
}

fn grid(items: usize) -> LaunchConfig {
    LaunchConfig::grid_1d(items)
}

/// The error of a launch.
fn error(
    device: &Device,
    config: LaunchConfig,
    args: &[Arg],
    build: impl FnOnce(&mut KernelBuilder<'_>),
) -> String {
    let kernel = built("faulty", ARCH, config.checks.is_some(), build);
    device.launch(&kernel, config, args).unwrap_err().to_string()
}

/// The findings of a checked launch.
fn found(
    device: &Device,
    config: LaunchConfig,
    args: &[Arg],
    build: impl FnOnce(&mut KernelBuilder<'_>),
) -> String {
    error(device, config.with_checks(Checks::all()), args, build)
}

fn numbers(device: &Device, len: usize) -> Buffer<i32> {
    device.buffer_from_slice(&vec![1; len]).unwrap().named("numbers")
}

/// `data[i] += 1`
fn step(b: &mut KernelBuilder<'_>) {
    let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
    let x = b.load(data, i);
    let next = b.ins().iadd_imm_s(x, 1);
    b.store(data, i, next);
}

fn load_at(b: &mut KernelBuilder<'_>, distance: i64) {
    let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
    let at = b.ins().iadd_imm_s(i, distance);
    let x = b.load(data, at);
    b.print("{}", &[x]);
}

fn store_at(b: &mut KernelBuilder<'_>, distance: i64) {
    let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
    let at = b.ins().iadd_imm_s(i, distance);
    b.store(data, at, i);
}

fn slot(b: &mut KernelBuilder<'_>) -> Value {
    let word = b.word_int();
    let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 2);
    let slot = b.inner().create_sized_stack_slot(data);
    b.ins().stack_addr(word, slot, 0)
}

fn forever(b: &mut KernelBuilder<'_>) {
    b.while_loop(|b| b.ins().iconst(types::I8, 1), |_| {});
}

fn even_waits(b: &mut KernelBuilder<'_>, of: Value) {
    let bit = b.ins().band_imm_u(of, 1);
    b.if_then(bit, |b| b.barrier());
}

const PLACE: &str = "faults.rs:";

const FAULTS: [Fault; 40] = [
    // What checks find.
    Fault {
        name: "a load behind the end",
        expected: &["out of bounds: load of i32 by work-item (9, 0, 0)", PLACE, "`numbers`"],
        run: |device| found(device, grid(10), &[(&numbers(device, 10)).into()], |b| load_at(b, 1)),
    },
    Fault {
        name: "a load before the start",
        expected: &["out of bounds: load of i32 by work-item (0, 0, 0)", PLACE, "byte -4 of"],
        run: |device| found(device, grid(10), &[(&numbers(device, 10)).into()], |b| load_at(b, -1)),
    },
    Fault {
        name: "a store behind the end",
        expected: &["out of bounds: store of i32 by work-item (9, 0, 0)", PLACE, "40 bytes"],
        run: |device| found(device, grid(10), &[(&numbers(device, 10)).into()], |b| store_at(b, 1)),
    },
    Fault {
        name: "a store far away",
        expected: &["out of bounds: store of i32", PLACE, "(10 times)"],
        run: |device| {
            found(device, grid(10), &[(&numbers(device, 10)).into()], |b| store_at(b, 4000))
        },
    },
    Fault {
        name: "a store behind a view",
        expected: &["out of bounds: store of i32 by work-item (4, 0, 0)", "16 bytes"],
        run: |device| {
            let part = numbers(device, 10).view(2..6).unwrap();
            found(device, grid(5), &[(&part).into()], |b| store_at(b, 0))
        },
    },
    Fault {
        name: "a load from a buffer that was freed",
        expected: &["out of bounds: load of i32", "where no buffer is"],
        run: |device| {
            let address = numbers(device, 10).address();
            found(device, grid(1), &[Arg::address(address)], |b| load_at(b, 0))
        },
    },
    Fault {
        name: "a load behind an array of the group",
        expected: &[
            "out of bounds: load of i32",
            "of group (0, 0, 0)",
            "array `tile` of its work-group",
        ],
        run: |device| {
            found(device, grid(8).with_groups_1d(8), &[], |b| {
                let (tile, own) = (b.group_buffer::<i32>("tile", 8), b.local_id(0));
                b.store(tile, own, own);
                b.barrier();
                let next = b.ins().iadd_imm_s(own, 1);
                let x = b.load(tile, next);
                b.print("{}", &[x]);
            })
        },
    },
    Fault {
        name: "a store behind an array of the group",
        expected: &["out of bounds: store of i32 by work-item (7, 0, 0)", "of its work-group"],
        run: |device| {
            found(device, grid(8).with_groups_1d(8), &[Arg::group::<i32>(7)], |b| {
                let (tile, own) = (b.group_param::<i32>("tile"), b.local_id(0));
                b.store(tile, own, own);
            })
        },
    },
    Fault {
        name: "a store behind a stack slot",
        expected: &["out of bounds: store of i32", PLACE, "its stack slot, which has 16 bytes"],
        run: |device| {
            found(device, grid(3), &[4_usize.into()], |b| {
                let (slot, at) = (slot(b), b.scalar::<usize>("at"));
                b.store_elem(at, slot, at);
            })
        },
    },
    Fault {
        name: "a load before a stack slot",
        expected: &["out of bounds: load of i32", "byte -4 of its stack slot"],
        run: |device| {
            found(device, grid(3), &[u32::MAX.into()], |b| {
                let (slot, at) = (slot(b), b.scalar::<u32>("at"));
                let x = b.load_elem(types::I32, slot, at);
                b.print("{}", &[x]);
            })
        },
    },
    Fault {
        name: "a load from a buffer that nobody has written",
        expected: &["uninitialized: load of i32", PLACE, "(4 times)"],
        run: |device| {
            let buffer = device.buffer_uninitialized::<i32>(4).unwrap();
            found(device, grid(4), &[(&buffer).into()], |b| load_at(b, 0))
        },
    },
    Fault {
        name: "a load from memory of the group that nobody has written",
        expected: &["uninitialized: load of i32", "array `tile` of its work-group"],
        run: |device| {
            found(device, grid(8).with_groups_1d(8), &[], |b| {
                let (tile, own) = (b.group_buffer::<i32>("tile", 8), b.local_id(0));
                let x = b.load(tile, own);
                b.print("{}", &[x]);
            })
        },
    },
    Fault {
        name: "a load from a stack slot that nobody has written",
        expected: &["uninitialized: load of i32", "its stack slot"],
        run: |device| {
            found(device, grid(3), &[], |b| {
                let (slot, at) = (slot(b), b.word_const(2));
                let x = b.load_elem(types::I32, slot, at);
                b.print("{}", &[x]);
            })
        },
    },
    Fault {
        name: "a race within a group",
        expected: &["race: load of i32 by work-item", ", and store of i32 by work-item", PLACE],
        run: |device| {
            found(device, grid(8).with_groups_1d(8), &[], |b| {
                let (tile, own) = (b.group_buffer::<i32>("tile", 8), b.local_id(0));
                b.store(tile, own, own);
                let other = b.ins().bxor_imm_u(own, 1);
                let x = b.load(tile, other);
                b.print("{}", &[x]);
            })
        },
    },
    Fault {
        name: "a race between groups",
        expected: &["race: store of i32", "of group (1, 0, 0)", ", and store of i32"],
        run: |device| {
            let buffer = numbers(device, 8);
            found(device, grid(16).with_groups_1d(8), &[(&buffer).into()], |b| {
                let (data, own, i) = (b.buffer::<i32>("data"), b.local_id(0), b.global_id(0));
                b.store(data, own, i);
            })
        },
    },
    Fault {
        name: "a race of a load and a store",
        expected: &["race: ", "load of i32", "store of i32", "`numbers`"],
        run: |device| {
            found(device, grid(9), &[(&numbers(device, 10)).into()], |b| {
                let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
                let next = b.ins().iadd_imm_s(i, 1);
                let x = b.load(data, next);
                b.store(data, i, x);
                b.store(data, i, i);
            })
        },
    },
    Fault {
        name: "elements of another type",
        expected: &["element type: load of i16", "the elements are i32"],
        run: |device| {
            found(device, grid(3), &[(&numbers(device, 10)).into()], |b| {
                let (data, i) = (b.param(ParamType::Pointer), b.global_id(0));
                let x = b.load_elem(types::I16, data, i);
                b.print("{}", &[x]);
            })
        },
    },
    Fault {
        name: "checks of a kernel that does not report",
        expected: &["kernel `faulty` is not compiled with `report_accesses`"],
        run: |device| {
            let kernel = built("faulty", ARCH, false, step);
            let args = [(&numbers(device, 3)).into()];
            let config = grid(3).with_checks(Checks::all());
            device.launch(&kernel, config, &args).unwrap_err().to_string()
        },
    },
    // Wrong arguments.
    Fault {
        name: "too few arguments",
        expected: &["kernel `faulty` takes 1 arguments, 0 given"],
        run: |device| error(device, grid(3), &[], step),
    },
    Fault {
        name: "a number for a buffer",
        expected: &["parameter `data` has type pointer, its argument has type i32"],
        run: |device| error(device, grid(3), &[7.into()], step),
    },
    Fault {
        name: "a buffer of other elements",
        expected: &["parameter `data` has elements of type i32", "are of type f64"],
        run: |device| {
            let buffer = device.buffer_zeroed::<f64>(3).unwrap();
            error(device, grid(3), &[(&buffer).into()], step)
        },
    },
    Fault {
        name: "a length that does not fit the word",
        expected: &["parameter `n`: the argument 4294967296 does not fit"],
        run: |device| {
            error(device, grid(3), &[(1_usize << 32).into()], |b| {
                let n = b.scalar::<usize>("n");
                b.print("{}", &[n]);
            })
        },
    },
    Fault {
        name: "a buffer of another device",
        expected: &["parameter `data`: the argument is a buffer of another device"],
        run: |device| {
            let other = Device::new(DeviceConfig::new(device.arch())).unwrap();
            error(device, grid(3), &[(&numbers(&other, 3)).into()], step)
        },
    },
    Fault {
        name: "too much memory for a group",
        expected: &["parameter `tile`", "bytes of memory for a work-group, the limit is"],
        run: |device| {
            error(device, grid(8).with_groups_1d(8), &[Arg::group::<i32>(1 << 30)], |b| {
                let (tile, own) = (b.group_param::<i32>("tile"), b.local_id(0));
                b.store(tile, own, own);
            })
        },
    },
    Fault {
        name: "no groups",
        expected: &["kernel `faulty` uses work-groups, but the launch has none"],
        run: |device| error(device, grid(3), &[], |b| b.barrier()),
    },
    Fault {
        name: "groups larger than a core",
        expected: &["33 x 1 x 1 work-items, a core has 32 lanes"],
        run: |device| error(device, grid(64).with_groups_1d(33), &[], |b| b.barrier()),
    },
    Fault {
        name: "a grid larger than the word",
        expected: &["a grid of 4294967295 x 4294967295 x 1 work-items, the limit is"],
        run: |device| error(device, LaunchConfig::grid_2d(0xffff_ffff, 0xffff_ffff), &[], forever),
    },
    Fault {
        name: "a kernel for another machine",
        expected: &["kernel `faulty` is for 8w32/32/16/16, the device is 4w32/16/8/4+x"],
        run: |device| {
            let kernel = built("faulty", "harp64", false, |_| {});
            device.launch(&kernel, grid(3), &[]).unwrap_err().to_string()
        },
    },
    Fault {
        name: "no memory for a buffer",
        expected: &["bytes of guest memory asked for", "are free"],
        run: |device| device.buffer_zeroed::<u64>(1 << 40).unwrap_err().to_string(),
    },
    Fault {
        name: "a range outside of its buffer",
        expected: &["elements 2 to 9 of buffer `numbers`, which has 3"],
        run: |device| numbers(device, 3).view(2..9).unwrap_err().to_string(),
    },
    // Traps.
    Fault {
        name: "a kernel that never ends, by fuel",
        expected: &["kernel `faulty`", "fuel"],
        run: |device| error(device, grid(3).with_fuel(10_000), &[], forever),
    },
    Fault {
        name: "a kernel that never ends, by time",
        expected: &["kernel `faulty`", "time"],
        run: |device| {
            error(device, grid(3).with_time_limit(Duration::from_millis(20)), &[], forever)
        },
    },
    Fault {
        name: "a launch that is cancelled",
        expected: &["kernel `faulty`", "cancelled"],
        run: |device| {
            device.cancel_token().cancel();
            let error = error(device, grid(3), &[], forever);
            device.cancel_token().reset();
            error
        },
    },
    Fault {
        name: "a barrier that not all work-items of a warp reach",
        expected: &["kernel `faulty` at", PLACE, "divergent `bar`: lanes 0-7", "lanes 1 3 5 7"],
        run: |device| {
            error(device, grid(8).with_groups_1d(8), &[], |b| {
                let own = b.local_id(0);
                even_waits(b, own);
            })
        },
    },
    Fault {
        name: "a barrier that not all warps of a group reach",
        expected: &["kernel `faulty`", "deadlock"],
        run: |device| {
            error(device, grid(16).with_groups_1d(16), &[], |b| {
                let own = b.local_id(0);
                let warp = b.ins().ushr_imm_u(own, 3);
                even_waits(b, warp);
            })
        },
    },
    Fault {
        name: "a division by zero",
        expected: &["kernel `faulty` at", PLACE, "division by zero"],
        run: |device| {
            error(device, grid(3), &[(&numbers(device, 3)).into()], |b| {
                let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
                let x = b.load(data, i);
                let quotient = b.ins().udiv(x, i);
                b.store(data, i, quotient);
            })
        },
    },
    Fault {
        name: "an address outside of the memory",
        expected: &["kernel `faulty` at", PLACE, "load", "0x7ffffff0"],
        run: |device| error(device, grid(1), &[Arg::address(0x7fff_fff0)], |b| load_at(b, 0)),
    },
    Fault {
        name: "a store to the null pointer",
        expected: &["kernel `faulty` at", PLACE, "store"],
        run: |device| error(device, grid(1), &[Arg::address(0)], |b| store_at(b, 0)),
    },
    Fault {
        name: "a condition that traps",
        expected: &["kernel `faulty` at", PLACE, "user7", "lane 2)"],
        run: |device| {
            error(device, grid(3), &[], |b| {
                let i = b.global_id(0);
                let is_two = b.ins().icmp_imm_s(IntCC::Equal, i, 2);
                b.trap_if(is_two, TrapCode::unwrap_user(7));
            })
        },
    },
    // Files, and what comes behind a failure in a queue.
    Fault {
        name: "a damaged cache, a folder that cannot be written, a damaged replay, a failed queue",
        expected: &["it is damaged", "queue: ", "compiled again: 1 rejected", "1 disk errors"],
        run: |device| {
            let folder = TempDir::new().unwrap();
            let mut source = KernelSource::new("faulty", device.arch());
            let mut b = KernelBuilder::new(&mut source);
            step(&mut b);
            b.return_();
            b.finalize().unwrap();
            let cache = || CodeCache::on_disk(folder.path().join("cache"));
            cache().compile(&source, &CompileOptions::default()).unwrap();
            let file = fs::read_dir(folder.path().join("cache")).unwrap().next().unwrap().unwrap();
            let mut bytes = fs::read(file.path()).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(file.path(), &bytes).unwrap();
            let again = cache();
            let kernel = again.compile(&source, &CompileOptions::default()).unwrap();
            let nowhere = CodeCache::on_disk(file.path().join("below"));
            nowhere.compile(&source, &CompileOptions::default()).unwrap();

            let path = folder.path().join("x.harpreplay");
            let buffer = numbers(device, 3);
            let args = [Arg::from(&buffer)];
            Replay::new(device, &kernel, grid(3), &args).unwrap().write(&path).unwrap();
            let mut bytes = fs::read(&path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(&path, &bytes).unwrap();
            let damaged = Replay::read(&path).unwrap_err();

            let queue = Queue::new(device).unwrap();
            queue.launch(&Arc::clone(&kernel), grid(3), &[]);
            let failed = queue.finish().unwrap_err();
            let (rejected, errors) = (again.stats().rejected, nowhere.stats().disk_errors / 2);
            format!(
                "{damaged}; queue: {failed}; compiled again: {rejected} rejected, {errors} disk errors"
            )
        },
    },
];

#[test]
fn forty_faults_have_their_errors_and_leave_the_device_usable() {
    let device = Device::new(DeviceConfig::new(ARCH.parse().unwrap())).unwrap();
    let kernel = built("step", ARCH, false, step);
    let survivor = device.buffer_from_slice(&[1, 2, 3]).unwrap();
    for (launches, fault) in (1..).zip(&FAULTS) {
        let error = (fault.run)(&device);
        for expected in fault.expected {
            assert!(error.contains(expected), "{}: `{expected}` is not in: {error}", fault.name);
        }
        device.launch(&kernel, grid(3), &[Arg::from(&survivor)]).unwrap();
        let expected = [1, 2, 3].map(|x| x + launches);
        assert_eq!(device.read(&survivor).unwrap(), expected, "after {}", fault.name);
    }
}
