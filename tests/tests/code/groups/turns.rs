//! Accesses that lanes and warps make to the same words: atomic ones, and stores to parts of words. Without extension X
//! these take several instructions, between which no other lane may come.

use std::num::NonZeroUsize;

use harp_jit::ir::condcodes::IntCC;
use harp_jit::ir::{
    AtomicRmwOp, Endianness, MemFlagsData, StackSlotData, StackSlotKind, Type, Value, types,
};
use harp_jit::{ArchId, KernelBuilder, ParamType};
use harp_runtime::{Arg, Checks, Device, DeviceConfig, LaunchConfig, LaunchError};

use super::{compile, compile_all, run};

/// Base machines with one lane and many, one warp and many, of both words and encodings, and machines with the
/// instructions to compare with.
const MACHINES: [&str; 8] = [
    "harp32",
    "harp64",
    "4w8/2/1/5",
    "4b16/4/3/4",
    "8w9/3/64/1",
    "8b8/2/2/16",
    "4w32/16/8/4+x",
    "8w16/16/4/4+x",
];

/// The operations whose outcome does not depend on the order.
const OPS: [AtomicRmwOp; 9] = {
    use AtomicRmwOp::{Add, And, Or, Smax, Smin, Sub, Umax, Umin, Xor};
    [Add, Sub, And, Or, Xor, Umin, Umax, Smin, Smax]
};

fn each(test: impl Fn(ArchId, &Device)) {
    for (id, cores) in MACHINES.into_iter().zip([1, 2, 3].into_iter().cycle()) {
        let arch: ArchId = id.parse().unwrap();
        test(arch, &device(arch, cores));
    }
}

/// Its cores could run on several host threads.
fn device(arch: ArchId, cores: u16) -> Device {
    let config = DeviceConfig::new(arch);
    let host_threads = NonZeroUsize::new(4);
    Device::new(DeviceConfig { cores, host_threads, fuel: Some(1 << 28), ..config }).unwrap()
}

/// The integers of at most a word.
fn ints(arch: ArchId) -> impl Iterator<Item = Type> {
    let all = [types::I8, types::I16, types::I32, types::I64];
    all.into_iter().filter(move |ty| ty.bits() <= u32::from(arch.word().bits()))
}

/// A word as another integer.
fn resized(b: &mut KernelBuilder<'_>, value: Value, ty: Type) -> Value {
    let given = b.inner().func.dfg.value_type(value);
    match given.bits().cmp(&ty.bits()) {
        std::cmp::Ordering::Less => b.ins().uextend(ty, value),
        std::cmp::Ordering::Equal => value,
        std::cmp::Ordering::Greater => b.ins().ireduce(ty, value),
    }
}

/// The number of a work-item counted from the last one.
fn from_last(b: &mut KernelBuilder<'_>, i: Value) -> Value {
    let word = b.word_int();
    let last = b.ins().iconst(word, ITEMS as i64 - 1);
    b.ins().isub(last, i)
}

/// Work-items: enough that every warp is interrupted several times.
const ITEMS: usize = 2000;

/// A lane, a warp and a core each write beside others.
#[test]
fn elements_of_all_sizes_are_stored_beside_each_other() {
    each(|arch, device| {
        for ty in [types::I8, types::I16, types::I32, types::I64, types::F32, types::F64] {
            let kernel = compile(arch, |b| {
                let data = b.param(ParamType::Pointer);
                let i = b.global_id(0);
                let value = if ty.is_float() {
                    b.ins().fcvt_from_uint(ty, i)
                } else {
                    let i = b.ins().imul_imm_s(i, 77);
                    resized(b, i, ty)
                };
                // Downwards: what a lane changes beside its own is then not written again by the next one.
                let index = from_last(b, i);
                b.store_elem(value, data, index);
            });
            let size = ty.bytes() as usize;
            let wanted: Vec<u8> = (0..ITEMS as u64)
                .rev()
                .flat_map(|i| match ty {
                    types::F32 => (i as f32).to_le_bytes().to_vec(),
                    types::F64 => (i as f64).to_le_bytes().to_vec(),
                    _ => (i * 77).to_le_bytes()[..size].to_vec(),
                })
                .collect();
            let data = device.buffer_zeroed::<u8>(ITEMS * size).unwrap();
            let args = [Arg::address(data.address())];
            device.launch(&kernel, LaunchConfig::grid_1d(ITEMS), &args).unwrap();
            let found = device.read(&data).unwrap();
            let wrong = found.iter().zip(&wanted).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "{ty} on {arch}");
        }
    });
}

/// Numbers of 7 bytes each that begin anywhere, of which 4 or 5 are stored: the bytes between are the neighbours'.
#[test]
fn stores_need_not_be_aligned() {
    each(|arch, device| {
        for endianness in [Endianness::Little, Endianness::Big] {
            let kernel = compile(arch, |b| {
                let data = b.param(ParamType::Pointer);
                let i = b.global_id(0);
                let index = from_last(b, i);
                let offset = b.ins().imul_imm_s(index, 7);
                let address = b.ins().iadd(data, offset);
                let flags = MemFlagsData::new().with_endianness(endianness);
                let (wide, half) = (resized(b, i, types::I32), resized(b, i, types::I16));
                b.ins().store(flags, wide, address, 0);
                b.ins().store(flags, half, address, 4);
                let word = b.word_int();
                let low = b.ins().band_imm_u(i, 0x7f);
                let byte = b.ins().bor_imm_u(low, 0x80);
                assert_eq!(b.inner().func.dfg.value_type(byte), word);
                b.ins().istore8(flags, byte, address, 6);
            });
            let data = device.buffer_zeroed::<u8>(ITEMS * 7).unwrap();
            let args = [Arg::address(data.address())];
            device.launch(&kernel, LaunchConfig::grid_1d(ITEMS), &args).unwrap();
            let found = device.read(&data).unwrap();
            for (i, bytes) in (0..ITEMS as u32).rev().zip(found.chunks(7)) {
                let (wide, half) = match endianness {
                    Endianness::Little => (i.to_le_bytes(), (i as u16).to_le_bytes()),
                    Endianness::Big => (i.to_be_bytes(), (i as u16).to_be_bytes()),
                };
                let wanted = [&wide[..], &half, &[i as u8 | 0x80]].concat();
                assert_eq!(bytes, wanted, "{i} on {arch}");
            }
        }
    });
}

/// All work-items with an odd number update cells of a few, a part of a word each.
#[test]
fn no_update_of_a_cell_is_lost() {
    const CELLS: usize = 3;
    each(|arch, device| {
        for ty in ints(arch) {
            let mask = u64::MAX >> (64 - ty.bits());
            let kernel = compile(arch, |b| {
                let data = b.param(ParamType::Pointer);
                let i = b.global_id(0);
                let odd = b.ins().band_imm_u(i, 1);
                b.if_then(odd, |b| {
                    let cell = b.ins().urem_imm_u(i, CELLS as i64);
                    let value = b.ins().imul_imm_s(i, 0x5a7);
                    let value = resized(b, value, ty);
                    for (at, op) in (0..).zip(OPS) {
                        let index = b.ins().iadd_imm_s(cell, at * CELLS as i64);
                        b.atomic_elem(op, value, data, index);
                    }
                });
            });
            let size = ty.bytes() as usize;
            let cells = OPS.len() * CELLS;
            let start: Vec<u8> = [0x2b].repeat(cells * size);
            let data = device.buffer_from_slice(&start).unwrap();
            let args = [Arg::address(data.address())];
            device.launch(&kernel, LaunchConfig::grid_1d(ITEMS), &args).unwrap();

            let first = 0x2b2b_2b2b_2b2b_2b2b & mask;
            let signed = |x: u64| ((x << (64 - ty.bits())) as i64) >> (64 - ty.bits());
            let mut wanted = vec![first; cells];
            for i in (1..ITEMS).step_by(2) {
                let value = (i as u64 * 0x5a7) & mask;
                for (at, op) in OPS.into_iter().enumerate() {
                    let cell = &mut wanted[at * CELLS + i % CELLS];
                    *cell = mask
                        & match op {
                            AtomicRmwOp::Add => cell.wrapping_add(value),
                            AtomicRmwOp::Sub => cell.wrapping_sub(value),
                            AtomicRmwOp::And => *cell & value,
                            AtomicRmwOp::Or => *cell | value,
                            AtomicRmwOp::Xor => *cell ^ value,
                            AtomicRmwOp::Umin => value.min(*cell),
                            AtomicRmwOp::Umax => value.max(*cell),
                            AtomicRmwOp::Smin => signed(value).min(signed(*cell)) as u64,
                            _ => signed(value).max(signed(*cell)) as u64,
                        };
                }
            }
            let bytes = device.read(&data).unwrap();
            let found: Vec<u64> = bytes
                .chunks(size)
                .map(|cell| cell.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
                .collect();
            assert_eq!(found, wanted, "{ty} on {arch}");
        }
    });
}

/// Each old value of a counter, and each value that was put into a cell, is seen once.
#[test]
fn old_values_are_seen_once() {
    each(|arch, device| {
        let kernel = compile(arch, |b| {
            let [data, tickets, passed] = [(); 3].map(|()| b.param(ParamType::Pointer));
            let (i, word) = (b.global_id(0), b.word_int());
            let [zero, one] = [0, 1].map(|value| b.ins().iconst(word, value));
            let ticket = b.atomic_elem(AtomicRmwOp::Add, one, data, zero);
            b.store_elem(ticket, tickets, i);
            let own = b.ins().iadd_imm_s(i, 1);
            let before = b.atomic_elem(AtomicRmwOp::Xchg, own, data, one);
            b.store_elem(before, passed, i);
        });
        let word = usize::from(arch.word().bytes());
        let [data, tickets, passed] =
            [2, ITEMS, ITEMS].map(|len| device.buffer_zeroed::<u8>(len * word).unwrap());
        let args = [&data, &tickets, &passed].map(|buffer| Arg::address(buffer.address()));
        device.launch(&kernel, LaunchConfig::grid_1d(ITEMS), &args).unwrap();
        let words = |bytes: Vec<u8>| -> Vec<usize> {
            let low = |word: &[u8]| u16::from_le_bytes([word[0], word[1]]).into();
            bytes.chunks(word).map(low).collect()
        };
        let last = words(device.read(&data).unwrap());
        let mut tickets = words(device.read(&tickets).unwrap());
        tickets.sort_unstable();
        assert_eq!(tickets, (0..ITEMS).collect::<Vec<_>>(), "{arch}");
        let mut passed = words(device.read(&passed).unwrap());
        passed.push(last[1]);
        passed.sort_unstable();
        assert_eq!(passed, (0..=ITEMS).collect::<Vec<_>>(), "{arch}");
    });
}

/// A counter without an operation for it, under control flow that differs from lane to lane.
#[test]
fn compare_and_swap_under_divergent_control_flow() {
    for id in ["harp32", "8b8/2/4/4", "4w8/2/1/3", "4w32/16/8/4+x"] {
        let arch: ArchId = id.parse().unwrap();
        for kernel in compile_all(arch, |b| {
            let data = b.param(ParamType::Pointer);
            let (i, word) = (b.global_id(0), b.word_int());
            let zero = b.ins().iconst(word, 0);
            let rounds = b.ins().band_imm_u(i, 3);
            let one = b.ins().iconst(word, 1);
            b.for_range_unsigned(zero, rounds, one, |b, round| {
                let is_first = b.ins().icmp(IntCC::Equal, round, zero);
                b.if_else(
                    is_first,
                    |b| {
                        // x := 5 x + 1 modulo 2^16, so often as it takes.
                        b.while_loop(
                            |b| {
                                let old = b.load_elem(types::I16, data, one);
                                let product = b.ins().imul_imm_s(old, 5);
                                let new = b.ins().iadd_imm_s(product, 1);
                                let seen = b.compare_exchange_elem(old, new, data, one);
                                b.ins().icmp(IntCC::NotEqual, seen, old)
                            },
                            |_| {},
                        );
                    },
                    |b| {
                        let one = b.ins().iconst(types::I16, 1);
                        b.atomic_elem(AtomicRmwOp::Add, one, data, zero);
                    },
                );
            });
        }) {
            let items = 500_u32;
            let config = LaunchConfig::grid_1d(items as usize);
            let out = run(&device(arch, 2), &kernel, config, &[0, 0]);
            let first = (0..items).filter(|i| i % 4 > 0).count();
            let others: u32 = (0..items).map(|i| (i % 4).saturating_sub(1)).sum();
            let x = (0..first).fold(0_u16, |x, _| x.wrapping_mul(5).wrapping_add(1));
            assert_eq!(out[0], others | u32::from(x) << 16, "{id}");
        }
    }
}

/// One warp waits for what another one has stored before an atomic store, and answers.
#[test]
fn atomic_accesses_are_ordered() {
    for id in ["harp32", "8b8/2/4/4", "4w32/16/8/4+x"] {
        let arch: ArchId = id.parse().unwrap();
        for kernel in compile_all(arch, |b| {
            let data = b.param(ParamType::Pointer);
            let (i, lanes, word) = (b.global_id(0), b.lane_count(), b.word_int());
            let flags = MemFlagsData::new().with_aligned();
            let [zero, one, two] = [0, 1, 2].map(|value| b.ins().iconst(word, value));
            let bytes = i64::from(word.bytes());
            let [there, back] = [1, 2].map(|at| b.ins().iadd_imm_s(data, at * bytes));
            let is_first = b.ins().icmp(IntCC::UnsignedLessThan, i, lanes);
            let wait = |b: &mut KernelBuilder<'_>, address: Value| {
                b.while_loop(
                    |b| {
                        let seen = b.ins().atomic_load(word, flags, address);
                        b.ins().icmp_imm_s(IntCC::Equal, seen, 0)
                    },
                    |_| {},
                );
                b.ins().fence();
            };
            b.if_else(
                is_first,
                |b| {
                    b.store_elem(two, data, zero);
                    b.ins().atomic_store(flags, one, there);
                    wait(b, back);
                },
                |b| {
                    wait(b, there);
                    let seen = b.load_elem(word, data, zero);
                    let sum = b.ins().iadd(seen, one);
                    let three = b.ins().iconst(word, 3);
                    b.store_elem(sum, data, three);
                    b.ins().atomic_store(flags, sum, back);
                },
            );
        }) {
            let lanes = usize::from(arch.lanes());
            for cores in [1, 2] {
                let config = LaunchConfig::grid_1d(2 * lanes);
                let out = run(&device(arch, cores), &kernel, config, &[0; 4]);
                assert_eq!(out, [2, 1, 3, 3], "{id}");
            }
        }
    }
}

/// Bytes of a lane's own, also such as another function, and so another lane, could know of.
#[test]
fn bytes_in_stack_slots() {
    for arch in MACHINES.map(|id| id.parse::<ArchId>().unwrap()) {
        for escapes in [false, true] {
            let kernel = compile(arch, |b| {
                let [data, places] = [(); 2].map(|()| b.param(ParamType::Pointer));
                let (i, word) = (b.global_id(0), b.word_int());
                let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 3);
                let slot = b.inner().create_sized_stack_slot(slot);
                let start = b.ins().stack_addr(word, slot, 0);
                if escapes {
                    b.store_elem(start, places, i);
                }
                let (zero, one) = (b.ins().iconst(word, 0), b.ins().iconst(word, 1));
                let count = b.ins().iconst(word, 16);
                b.for_range_unsigned(zero, count, one, |b, at| {
                    let value = b.ins().imul(at, i);
                    let value = b.ins().ireduce(types::I8, value);
                    b.store_elem(value, start, at);
                });
                let index = b.ins().band_imm_u(i, 15);
                let byte = b.load_elem(types::I8, start, index);
                let byte = b.ins().uextend(word, byte);
                b.store_elem(byte, data, i);
            });
            let locks = kernel.disassembly().contains("runtime.lock");
            assert_eq!(locks, escapes && !arch.has_extension(), "{arch}");
            let word = usize::from(arch.word().bytes());
            let device = device(arch, 1);
            let [data, places] = [(); 2].map(|()| device.buffer_zeroed::<u8>(300 * word).unwrap());
            let args = [&data, &places].map(|buffer| Arg::address(buffer.address()));
            device.launch(&kernel, LaunchConfig::grid_1d(300), &args).unwrap();
            let found = device.read(&data).unwrap();
            let low: Vec<u8> = found.chunks(word).map(|word| word[0]).collect();
            assert_eq!(low, (0..300).map(|i| (i % 16 * i) as u8).collect::<Vec<_>>(), "{arch}");
        }
    }
}

/// The access itself is where it was built, and so is its trap.
#[test]
fn traps_name_the_access_and_the_lane() {
    for id in ["harp32", "8b16/16/4/2", "4w32/16/8/4+x"] {
        let arch: ArchId = id.parse().unwrap();
        for atomic in [false, true] {
            let mut line = 0;
            let kernel = compile(arch, |b| {
                let data = b.param(ParamType::Pointer);
                let (i, word) = (b.global_id(0), b.word_int());
                let (zero, far) = (b.ins().iconst(word, 0), b.ins().iconst(word, 0x7000_0000));
                let is_third = b.ins().icmp_imm_s(IntCC::Equal, i, 2);
                let base = b.ins().select(is_third, far, data);
                if atomic {
                    line = line!() + 1;
                    b.atomic_elem(AtomicRmwOp::Add, i, base, zero);
                } else {
                    let byte = b.ins().ireduce(types::I8, i);
                    line = line!() + 1;
                    b.store_elem(byte, base, zero);
                }
            });
            let device = device(arch, 1);
            let data = device.buffer_zeroed::<u8>(8).unwrap();
            let args = [Arg::address(data.address())];
            let error = device.launch(&kernel, LaunchConfig::grid_1d(4), &args).unwrap_err();
            let LaunchError::Trap(trap) = error else { panic!("{error}") };
            let place = trap.place.as_ref().unwrap();
            assert!(place.file.ends_with("turns.rs") && place.line == line, "{trap}");
            assert_eq!(trap.trap.lanes, 1 << 2, "{id}: {trap}");
        }
    }
}

/// What the checks of a launch see is what the program does, not how: neighbours that store beside each other do not
/// race, and those that store to the same byte do.
#[test]
fn checks_see_the_accesses_of_the_program() {
    for id in ["harp32", "8b16/16/4/2", "4w32/16/8/4+x"] {
        let arch: ArchId = id.parse().unwrap();
        let source = |stride: i64| {
            super::build(arch, |b| {
                let data = b.buffer::<u8>("data");
                let counts = b.buffer::<u32>("counts");
                let i = b.global_id(0);
                let at = b.ins().udiv_imm_u(i, stride);
                let byte = b.ins().ireduce(types::I8, i);
                b.store(data, at, byte);
                let one = b.ins().iconst(types::I32, 1);
                let cell = b.ins().band_imm_u(i, 1);
                b.atomic(AtomicRmwOp::Add, counts, cell, one);
            })
        };
        let options = harp_jit::CompileOptions { report_accesses: true, ..Default::default() };
        for (stride, races) in [(1, false), (2, true)] {
            let kernel = source(stride).compile(&options).unwrap();
            let device = device(arch, 2);
            let data = device.buffer_zeroed::<u8>(40).unwrap();
            let counts = device.buffer_zeroed::<u32>(2).unwrap();
            let config = LaunchConfig::grid_1d(40).with_checks(Checks::all());
            let args = [Arg::from(&data), Arg::from(&counts)];
            match device.launch(&kernel, config, &args) {
                Ok(_) => assert!(!races, "{id}"),
                Err(LaunchError::Findings(found)) => assert!(races, "{id}: {found}"),
                Err(error) => panic!("{id}: {error}"),
            }
            assert_eq!(device.read(&counts).unwrap(), [20, 20], "{id}");
        }
    }
}

/// Addresses may be wider than words.
#[test]
fn parts_of_words_at_addresses_of_8_bytes() {
    each(|arch, device| {
        let kernels = compile_all(arch, |b| {
            let (data, i) = (b.param(ParamType::Pointer), b.global_id(0));
            let place = b.ins().iadd(data, i);
            let (place, value) = (resized(b, place, types::I64), resized(b, i, types::I8));
            b.ins().store(MemFlagsData::new(), value, place, 0);
        });
        let wanted: Vec<u8> = (0..ITEMS).map(|i| i as u8).collect();
        for kernel in kernels {
            let data = device.buffer_zeroed::<u8>(ITEMS).unwrap();
            device.launch(&kernel, LaunchConfig::grid_1d(ITEMS), &[Arg::from(&data)]).unwrap();
            assert_eq!(device.read(&data).unwrap(), wanted, "{arch}");
        }
    });
}
