//! Where the stacks of lanes are.

use harp_runtime::jit::ir::{MemFlagsData, StackSlotData, StackSlotKind};
use harp_runtime::prelude::*;

const MACHINES: [&str; 5] =
    ["4w32/16/32/16+x", "harp32", "harp64", "4w32/16/64/4+x", "4w24/12/32/16+x+s8/4"];

/// Where the slot of each lane of a warp begins, that has so many bytes. Each lane keeps its number at its first and its last word.
fn slots(arch: &str, bytes: u32) -> Vec<u64> {
    let device = Device::new(DeviceConfig::new(arch.parse().unwrap())).unwrap();
    let lanes = usize::from(device.arch().lanes());
    let mut source = KernelSource::new("slots", device.arch());
    let mut b = KernelBuilder::new(&mut source);
    let [starts, numbers] = [0, 1].map(|_| b.param(ParamType::Pointer));
    let (i, word) = (b.global_id(0), b.word_int());
    let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
    let slot = b.inner().create_sized_stack_slot(data);
    let flags = MemFlagsData::new().with_aligned();
    let start = b.ins().stack_addr(word, slot, 0);
    let size = usize::from(device.arch().word().bytes());
    let last = (bytes - size as u32).cast_signed();
    for offset in [0, last] {
        b.ins().store(flags, i, start, offset);
    }
    let [first, last] = [0, last].map(|offset| b.ins().load(word, flags, start, offset));
    let sum = b.ins().iadd(first, last);
    for (buffer, value) in [(starts, start), (numbers, sum)] {
        b.store_elem(value, buffer, i);
    }
    b.return_();
    b.finalize().unwrap();
    let kernel = source.compile(&CompileOptions::default()).unwrap();
    let [starts, numbers] = [0, 1].map(|_| device.buffer_zeroed::<u8>(lanes * size).unwrap());
    let args = [Arg::from(&starts), Arg::from(&numbers)];
    device.launch(&kernel, LaunchConfig::grid_1d(lanes), &args).unwrap();
    let words = |buffer: &Buffer<u8>| -> Vec<u64> {
        let bytes = device.read(buffer).unwrap();
        let word =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
        bytes.chunks(size).map(word).collect()
    };
    let doubled: Vec<u64> = (0..lanes as u64).map(|i| 2 * i).collect();
    assert_eq!(words(&numbers), doubled, "{bytes} on {arch}");
    words(&starts)
}

#[test]
fn lanes_do_not_compete_for_the_hosts_caches() {
    for arch in MACHINES {
        for bytes in [8, 200, 900, 1600, 2000, 3000, 3900, 5000, 20_000, 65_000] {
            let starts = slots(arch, bytes);
            let distance = starts[1] - starts[0];
            let are_apart = |pair: &[u64]| pair[1] - pair[0] == distance;
            assert!(starts.windows(2).all(are_apart), "{bytes} on {arch}: {starts:?}");
            assert!(distance >= bytes.into(), "{bytes} on {arch}: {distance}");
            // Caches of the first level have sets for 4096 bytes, of eight lines or more.
            let mut lines = [0; 64];
            starts.iter().for_each(|start| lines[(start % 4096 / 64) as usize] += 1);
            assert!(lines.iter().all(|&count| count <= 8), "{bytes} on {arch}: {lines:?}");
        }
    }
}
