//! For each category of findings: kernels in which it is found, and beside each its near miss, in which nothing is.
//!
//! The categories are Oclgrind's (Price and McIntosh-Smith 2015): invalid reads and writes of each address space (of
//! constant memory reads; what writes there, traps),
//! uninitialized memory, races within and between work-groups, barriers that not all work-items reach.
#![expect(clippy::unwrap_used, reason = "a failure of a helper is a failure of the test")]

use harp_runtime::jit::ir::{AtomicRmwOp, StackSlotData, StackSlotKind};
use harp_runtime::jit::{AccessKind, BufferParam, DataAccess, DataDescription, Linkage, Module};
use harp_runtime::prelude::*;
use harp_runtime::{Checks, Finding, FindingKind, Target, TrapKind};

const MACHINES: [&str; 3] = ["harp32", "4w32/16/32/16+x", "4b16/16/8/8"];
/// Work-items of a launch, elements of each buffer.
const ITEMS: i64 = 64;
/// Work-items of a work-group.
const GROUP: i64 = 16;
/// Elements of each datum.
const DATUM: i64 = 8;

/// A kernel under construction: work-items in groups over three buffers of [`ITEMS`] integers.
struct Body<'b, 'k> {
    b: &'b mut KernelBuilder<'k>,
    /// Written by the host.
    data: BufferParam<i32>,
    /// Written by nobody.
    raw: BufferParam<i32>,
    to: BufferParam<i32>,
    /// Data of the module: constants, and variables beside them.
    constants: BufferParam<i32>,
    variables: BufferParam<i32>,
    /// The work-item's number, that in its group, its group's.
    i: Value,
    own: Value,
    group: Value,
}

impl Body<'_, '_> {
    fn int(&mut self, value: i64) -> Value {
        self.b.word_const(value)
    }

    /// `value + by`.
    fn plus(&mut self, value: Value, by: i64) -> Value {
        self.b.ins().iadd_imm_s(value, by)
    }

    /// `value * by`.
    fn times(&mut self, value: Value, by: i64) -> Value {
        self.b.ins().imul_imm_s(value, by)
    }

    /// `value ^ by`.
    fn xor(&mut self, value: Value, by: i64) -> Value {
        self.b.ins().bxor_imm_s(value, by)
    }

    fn is_below(&mut self, value: Value, limit: i64) -> Value {
        self.b.ins().icmp_imm_s(IntCC::SignedLessThan, value, limit)
    }

    /// Reads an element, and writes it to the work-item's own place.
    fn read(&mut self, from: BufferParam<i32>, at: Value) {
        let value = self.b.load(from, at);
        self.b.store(self.to, self.i, value);
    }

    fn write(&mut self, to: BufferParam<i32>, at: Value, value: Value) {
        self.b.store(to, at, value);
    }

    /// An array of integers that the work-group shares.
    fn tile(&mut self, name: &str, len: i64) -> BufferParam<i32> {
        self.b.group_buffer::<i32>(name, u32::try_from(len).unwrap())
    }

    /// An array of integers on the stack.
    fn slot(&mut self, len: u32) -> BufferParam<i32> {
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 4 * len, 2);
        let slot = self.b.inner().create_sized_stack_slot(slot);
        BufferParam::at(self.b.ins().stack_addr(types::I32, slot, 0))
    }
}

/// What a launch is said to have done wrong.
enum Outcome {
    Right,
    Found(Vec<Finding>),
    Trapped(TrapKind),
}

fn outcome(arch: &str, build: &dyn Fn(&mut Body<'_, '_>)) -> Outcome {
    let arch: ArchId = arch.parse().unwrap();
    let options = CompileOptions { report_accesses: true, ..CompileOptions::default() };
    let mut module = Module::new(arch, options);
    // Others lie around them, so that what is outside of one is no trap. They are in the kernel because it has their
    // addresses.
    let mut data_of = |names: [&str; 3], access| {
        let ids = names.map(|name| module.declare_data(name, Linkage::Local, access).unwrap());
        for id in ids {
            let mut contents = DataDescription::new();
            contents.define(vec![1; 4 * DATUM as usize].into());
            contents.set_align(4);
            if id == ids[1] {
                for (at, other) in [(0, ids[0]), (8, ids[2])] {
                    let other = module.declare_data_in_data(other, &mut contents);
                    contents.write_data_addr(at, other, 0);
                }
            }
            module.define_data(id, &contents).unwrap();
        }
        ids[1]
    };
    let constants = data_of(["before", "constants", "behind"], DataAccess::ReadOnly);
    let variables = data_of(["below", "variables", "above"], DataAccess::ReadWrite);
    let mut source = KernelSource::new("case", arch);
    let mut b = KernelBuilder::new(&mut source);
    let [data, raw, to] = ["data", "raw", "to"].map(|name| b.buffer::<i32>(name));
    let (i, own, group) = (b.global_id(0), b.local_id(0), b.group_id(0));
    let [constants, variables] = [constants, variables].map(|id| b.data::<i32>(&module, id));
    build(&mut Body { b: &mut b, data, raw, to, constants, variables, i, own, group });
    b.return_();
    b.finalize().unwrap();
    let kernel = module.compile_kernel(&source).unwrap();

    let checks = Some(Checks::all());
    let device = Device::new(DeviceConfig { checks, ..DeviceConfig::new(arch) }).unwrap();
    let len = ITEMS as usize;
    let data = device.buffer_from_slice(&vec![1_i32; len]).unwrap();
    let raw = device.buffer_uninitialized::<i32>(len).unwrap();
    let to = device.buffer_zeroed::<i32>(len).unwrap();
    let groups = LaunchConfig::grid_1d(len).with_groups_1d(GROUP as usize);
    match device.launch(&kernel, groups, &[Arg::from(&data), Arg::from(&raw), Arg::from(&to)]) {
        Ok(_) => Outcome::Right,
        Err(LaunchError::Findings(findings)) => Outcome::Found(findings.list),
        Err(LaunchError::Trap(trap)) => Outcome::Trapped(trap.trap.kind),
        Err(error) => panic!("{error}"),
    }
}

/// A kernel with its name.
type Case<'a> = (&'a str, &'a dyn Fn(&mut Body<'_, '_>));

/// Launches each pair on all machines: `is_it` must be found in the first, and nothing in the second.
fn check(is_it: impl Fn(&Finding) -> bool, pairs: &[[Case<'_>; 2]]) {
    assert!(pairs.len() >= 3);
    for arch in MACHINES {
        for [(wrong, build), (near, right)] in pairs {
            match outcome(arch, build) {
                Outcome::Found(list) => {
                    let found = list.iter().filter(|finding| is_it(finding)).count();
                    assert!(found > 0 && found == list.len(), "{wrong} on {arch}: {list:?}");
                }
                Outcome::Right => panic!("{wrong} on {arch}: nothing was found"),
                Outcome::Trapped(kind) => panic!("{wrong} on {arch}: {kind:?}"),
            }
            match outcome(arch, right) {
                Outcome::Right => {}
                Outcome::Found(list) => panic!("{near} on {arch}: {list:?}"),
                Outcome::Trapped(kind) => panic!("{near} on {arch}: {kind:?}"),
            }
        }
    }
}

fn is_outside(finding: &Finding, kind: AccessKind, is_target: fn(&Target) -> bool) -> bool {
    finding.kind == FindingKind::OutOfBounds
        && finding.access.kind == kind
        && finding.target.as_ref().is_some_and(is_target)
}

fn is_buffer(target: &Target) -> bool {
    matches!(target, Target::Buffer { .. })
}

fn is_group(target: &Target) -> bool {
    matches!(target, Target::Group { .. })
}

fn is_stack(target: &Target) -> bool {
    matches!(target, Target::Stack { .. })
}

fn is_datum(target: &Target) -> bool {
    matches!(target, Target::Datum { .. })
}

fn is_race(finding: &Finding, in_one_group: bool) -> bool {
    let FindingKind::Race { other } = &finding.kind else { return false };
    (finding.access.group == other.group) == in_one_group
}

#[test]
fn invalid_reads_of_global_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Load, is_buffer),
        &[
            [
                ("the element behind the last", &|k| {
                    let at = k.plus(k.i, 1);
                    k.read(k.data, at);
                }),
                ("the last element", &|k| {
                    let at = k.xor(k.i, ITEMS - 1);
                    k.read(k.data, at);
                }),
            ],
            [
                ("the element before the first", &|k| {
                    let at = k.plus(k.i, -1);
                    k.read(k.data, at);
                }),
                ("before the first, but only if there is one", &|k| {
                    let (one, before) = (k.int(1), k.plus(k.i, -1));
                    let is_inside = k.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, k.i, one);
                    let zero = k.int(0);
                    let at = k.b.select(is_inside, before, zero);
                    k.read(k.data, at);
                }),
            ],
            [
                ("a loop that runs once too often", &|k| {
                    let (zero, end, one) = (k.int(0), k.int(ITEMS + 1), k.int(1));
                    let (data, to, i) = (k.data, k.to, k.i);
                    k.b.for_range(zero, end, one, |b, at| {
                        let value = b.load(data, at);
                        b.store(to, i, value);
                    });
                }),
                ("a loop over all elements", &|k| {
                    let (zero, end, one) = (k.int(0), k.int(ITEMS), k.int(1));
                    let (data, to, i) = (k.data, k.to, k.i);
                    k.b.for_range(zero, end, one, |b, at| {
                        let value = b.load(data, at);
                        b.store(to, i, value);
                    });
                }),
            ],
            [
                ("an element as wide as two across the end", &|k| {
                    let at = k.times(k.i, 4);
                    let address = k.b.ins().iadd(k.data.base(), at);
                    let flags = MemFlagsData::new();
                    let low = k.int(ITEMS - 1);
                    let is_last = k.b.ins().icmp(IntCC::Equal, k.i, low);
                    k.b.if_then(is_last, |b| {
                        b.ins().load(types::I32, flags, address, 4);
                    });
                }),
                ("one that ends with the buffer", &|k| {
                    let at = k.times(k.i, 4);
                    let address = k.b.ins().iadd(k.data.base(), at);
                    let flags = MemFlagsData::new();
                    let low = k.int(ITEMS - 1);
                    let is_last = k.b.ins().icmp(IntCC::NotEqual, k.i, low);
                    k.b.if_then(is_last, |b| {
                        b.ins().load(types::I32, flags, address, 4);
                    });
                }),
            ],
        ],
    );
}

#[test]
fn invalid_writes_of_global_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Store, is_buffer),
        &[
            [
                ("the element behind the last", &|k| {
                    let at = k.plus(k.i, 1);
                    k.write(k.to, at, k.i);
                }),
                ("the last element", &|k| {
                    let at = k.xor(k.i, ITEMS - 1);
                    k.write(k.to, at, k.i);
                }),
            ],
            [
                ("by an index twice as large", &|k| {
                    let at = k.times(k.i, 2);
                    k.write(k.to, at, k.i);
                }),
                ("by an index twice as large, where there is room", &|k| {
                    let (at, is_low) = (k.times(k.i, 2), k.is_below(k.i, ITEMS / 2));
                    let (to, i) = (k.to, k.i);
                    k.b.if_then(is_low, |b| b.store(to, at, i));
                }),
            ],
            [
                ("by the work-item before the first", &|k| {
                    let at = k.plus(k.i, -1);
                    k.write(k.raw, at, k.i);
                }),
                ("by an index that wraps around to the start", &|k| {
                    let next = k.plus(k.i, 1);
                    let at = k.b.ins().band_imm_s(next, ITEMS - 1);
                    k.write(k.raw, at, k.i);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_reads_of_local_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Load, is_group),
        &[
            [
                ("the neighbour's value, the last one's too", &|k| {
                    let tile = k.tile("tile", GROUP);
                    k.write(tile, k.own, k.i);
                    k.b.barrier();
                    let at = k.plus(k.own, 1);
                    k.read(tile, at);
                }),
                ("the neighbour's value, with room for one more", &|k| {
                    let tile = k.tile("tile", GROUP + 1);
                    k.write(tile, k.own, k.i);
                    let behind = k.int(GROUP);
                    k.write(tile, behind, k.group);
                    k.b.barrier();
                    let at = k.plus(k.own, 1);
                    k.read(tile, at);
                }),
            ],
            [
                ("one array through the other", &|k| {
                    let (first, second) = (k.tile("first", GROUP), k.tile("second", GROUP));
                    k.write(first, k.own, k.i);
                    k.write(second, k.own, k.i);
                    let at = k.plus(k.own, GROUP);
                    k.read(first, at);
                }),
                ("each array by itself", &|k| {
                    let (first, second) = (k.tile("first", GROUP), k.tile("second", GROUP));
                    k.write(first, k.own, k.i);
                    k.write(second, k.own, k.i);
                    k.read(first, k.own);
                    k.read(second, k.own);
                }),
            ],
            [
                ("by the number in the grid", &|k| {
                    let tile = k.tile("tile", GROUP);
                    k.write(tile, k.own, k.i);
                    k.read(tile, k.i);
                }),
                ("by the number in the grid, with that many elements", &|k| {
                    let tile = k.tile("tile", ITEMS);
                    k.write(tile, k.i, k.i);
                    k.read(tile, k.i);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_writes_of_local_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Store, is_group),
        &[
            [
                ("the element behind the last", &|k| {
                    let tile = k.tile("tile", GROUP);
                    let at = k.plus(k.own, 1);
                    k.write(tile, at, k.i);
                }),
                ("as many elements as are written", &|k| {
                    let tile = k.tile("tile", GROUP + 1);
                    let at = k.plus(k.own, 1);
                    k.write(tile, at, k.i);
                }),
            ],
            [
                ("by the number in the grid", &|k| {
                    let tile = k.tile("tile", GROUP);
                    k.write(tile, k.i, k.i);
                }),
                ("by the number in the group", &|k| {
                    let tile = k.tile("tile", GROUP);
                    k.write(tile, k.own, k.i);
                }),
            ],
            [
                ("two by two, in half the room", &|k| {
                    let (tile, at) = (k.tile("tile", GROUP), k.times(k.own, 2));
                    k.write(tile, at, k.i);
                }),
                ("two by two", &|k| {
                    let (tile, at) = (k.tile("tile", 2 * GROUP), k.times(k.own, 2));
                    k.write(tile, at, k.i);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_reads_of_private_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Load, is_stack),
        &[
            [
                ("the element behind the last", &|k| {
                    let (slot, zero, one) = (k.slot(1), k.int(0), k.int(1));
                    k.write(slot, zero, k.i);
                    k.read(slot, one);
                }),
                ("the last element", &|k| {
                    let (slot, zero, one) = (k.slot(2), k.int(0), k.int(1));
                    k.write(slot, zero, k.i);
                    k.write(slot, one, k.i);
                    k.read(slot, one);
                }),
            ],
            [
                ("by the work-item's number", &|k| {
                    let slot = k.slot(GROUP as u32);
                    let (zero, end, one) = (k.int(0), k.int(GROUP), k.int(1));
                    k.b.for_range(zero, end, one, |b, at| b.store(slot, at, at));
                    k.read(slot, k.i);
                }),
                ("by the number in the group", &|k| {
                    let slot = k.slot(GROUP as u32);
                    let (zero, end, one) = (k.int(0), k.int(GROUP), k.int(1));
                    k.b.for_range(zero, end, one, |b, at| b.store(slot, at, at));
                    k.read(slot, k.own);
                }),
            ],
            [
                ("the slot before", &|k| {
                    let (first, second) = (k.slot(2), k.slot(2));
                    let (zero, before) = (k.int(0), k.int(-1));
                    k.write(first, zero, k.i);
                    k.write(second, zero, k.i);
                    k.read(first, before);
                }),
                ("its own slot", &|k| {
                    let (first, second, zero) = (k.slot(2), k.slot(2), k.int(0));
                    k.write(first, zero, k.i);
                    k.write(second, zero, k.i);
                    k.read(first, zero);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_writes_of_private_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Store, is_stack),
        &[
            [
                ("the element behind the last", &|k| {
                    let (slot, four) = (k.slot(4), k.int(4));
                    k.write(slot, four, k.i);
                }),
                ("the last element", &|k| {
                    let (slot, three) = (k.slot(4), k.int(3));
                    k.write(slot, three, k.i);
                }),
            ],
            [
                ("a loop that runs once too often", &|k| {
                    let (slot, zero, end, one) = (k.slot(7), k.int(0), k.int(8), k.int(1));
                    k.b.for_range(zero, end, one, |b, at| b.store(slot, at, at));
                }),
                ("a loop over all elements", &|k| {
                    let (slot, zero, end, one) = (k.slot(8), k.int(0), k.int(8), k.int(1));
                    k.b.for_range(zero, end, one, |b, at| b.store(slot, at, at));
                }),
            ],
            [
                ("by what the host has written, twice", &|k| {
                    let slot = k.slot(2);
                    let value = k.b.load(k.data, k.i);
                    let at = k.times(value, 2);
                    k.write(slot, at, k.i);
                }),
                ("by what the host has written", &|k| {
                    let slot = k.slot(2);
                    let at = k.b.load(k.data, k.i);
                    k.write(slot, at, k.i);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_reads_of_constant_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Load, is_datum),
        &[
            [
                ("the element behind the last", &|k| {
                    let end = k.int(DATUM);
                    k.read(k.constants, end);
                }),
                ("the last element", &|k| {
                    let last = k.int(DATUM - 1);
                    k.read(k.constants, last);
                }),
            ],
            [
                ("by the number in the group", &|k| k.read(k.constants, k.own)),
                ("by the number in the group, in a circle", &|k| {
                    let at = k.b.ins().band_imm_s(k.own, DATUM - 1);
                    k.read(k.constants, at);
                }),
            ],
            [
                ("the element before the first, of one of two", &|k| {
                    let (is_low, before) = (k.is_below(k.i, ITEMS / 2), k.int(-1));
                    let [a, b] = [k.constants, k.variables].map(BufferParam::base);
                    let which = k.b.ins().select(is_low, a, b);
                    k.read(BufferParam::at(which), before);
                }),
                ("the first element of one of two", &|k| {
                    let (is_low, first) = (k.is_below(k.i, ITEMS / 2), k.int(0));
                    let [a, b] = [k.constants, k.variables].map(BufferParam::base);
                    let which = k.b.ins().select(is_low, a, b);
                    k.read(BufferParam::at(which), first);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_writes_of_variables_of_the_module() {
    let is_first = |k: &mut Body<'_, '_>| k.is_below(k.i, 1);
    check(
        |finding| is_outside(finding, AccessKind::Store, is_datum),
        &[
            [
                ("the element behind the last", &|k| {
                    let (variables, is_first, end) = (k.variables, is_first(k), k.int(DATUM));
                    k.b.if_then(is_first, |b| b.store(variables, end, end));
                }),
                ("the last element", &|k| {
                    let (variables, is_first, last) = (k.variables, is_first(k), k.int(DATUM - 1));
                    k.b.if_then(is_first, |b| b.store(variables, last, last));
                }),
            ],
            [
                ("by the work-item's number", &|k| k.write(k.variables, k.i, k.i)),
                ("by the work-item's number, where there is room", &|k| {
                    let (variables, i, is_low) = (k.variables, k.i, k.is_below(k.i, DATUM));
                    k.b.if_then(is_low, |b| b.store(variables, i, i));
                }),
            ],
            [
                ("the element before the first", &|k| {
                    let (variables, is_first, before) = (k.variables, is_first(k), k.int(-1));
                    k.b.if_then(is_first, |b| b.store(variables, before, before));
                }),
                ("the first element", &|k| {
                    let (variables, is_first, zero) = (k.variables, is_first(k), k.int(0));
                    k.b.if_then(is_first, |b| b.store(variables, zero, zero));
                }),
            ],
        ],
    );
}

#[test]
fn uninitialized_memory() {
    check(
        |finding| finding.kind == FindingKind::Uninitialized,
        &[
            [
                ("a buffer that nobody has written", &|k| k.read(k.raw, k.i)),
                ("a buffer that the work-item has written", &|k| {
                    k.write(k.raw, k.i, k.i);
                    k.read(k.raw, k.i);
                }),
            ],
            [
                ("half of a buffer", &|k| {
                    let (is_low, raw, i) = (k.is_below(k.i, ITEMS / 2), k.raw, k.i);
                    k.b.if_then(is_low, |b| b.store(raw, i, i));
                    k.read(k.raw, k.i);
                }),
                ("half of a buffer, of which that half is read", &|k| {
                    let (is_low, raw, to, i) = (k.is_below(k.i, ITEMS / 2), k.raw, k.to, k.i);
                    k.b.if_then(is_low, |b| b.store(raw, i, i));
                    k.b.if_then(is_low, |b| {
                        let value = b.load(raw, i);
                        b.store(to, i, value);
                    });
                }),
            ],
            [
                ("a group's memory, in which only the first item writes", &|k| {
                    let (tile, is_first) = (k.tile("tile", GROUP), k.is_below(k.own, 1));
                    let (own, i) = (k.own, k.i);
                    k.b.if_then(is_first, |b| b.store(tile, own, i));
                    k.b.barrier();
                    k.read(tile, k.own);
                }),
                ("a group's memory, where the first item writes", &|k| {
                    let (tile, is_first) = (k.tile("tile", GROUP), k.is_below(k.own, 1));
                    let (own, i, zero) = (k.own, k.i, k.int(0));
                    k.b.if_then(is_first, |b| b.store(tile, own, i));
                    k.b.barrier();
                    k.read(tile, zero);
                }),
            ],
            [
                ("the second element of a slot", &|k| {
                    let (slot, zero, one) = (k.slot(2), k.int(0), k.int(1));
                    k.write(slot, zero, k.i);
                    k.read(slot, one);
                }),
                ("the first element of a slot", &|k| {
                    let (slot, zero) = (k.slot(2), k.int(0));
                    k.write(slot, zero, k.i);
                    k.read(slot, zero);
                }),
            ],
        ],
    );
}

#[test]
fn races_within_a_group() {
    check(
        |finding| is_race(finding, true),
        &[
            [
                ("a neighbour's value without a barrier", &|k| {
                    let (tile, at) = (k.tile("tile", GROUP), k.xor(k.own, 1));
                    k.write(tile, k.own, k.i);
                    k.write(tile, at, k.own);
                }),
                ("a neighbour's value behind a barrier", &|k| {
                    let (tile, at) = (k.tile("tile", GROUP), k.xor(k.own, 1));
                    k.write(tile, k.own, k.i);
                    k.b.barrier();
                    k.write(tile, at, k.own);
                }),
            ],
            [
                ("all items add to one element", &|k| {
                    let (tile, zero) = (k.tile("sum", 1), k.int(0));
                    k.write(tile, zero, zero);
                    k.b.barrier();
                    let sum = k.b.load(tile, zero);
                    let sum = k.b.ins().iadd(sum, k.i);
                    k.write(tile, zero, sum);
                }),
                ("all items add to one element atomically", &|k| {
                    let (tile, zero) = (k.tile("sum", 1), k.int(0));
                    k.write(tile, zero, zero);
                    k.b.barrier();
                    k.b.atomic(AtomicRmwOp::Add, tile, zero, k.i);
                }),
            ],
            [
                ("in a buffer, a neighbour of the group", &|k| {
                    let at = k.xor(k.i, GROUP - 1);
                    k.write(k.raw, k.i, k.i);
                    k.write(k.raw, at, k.own);
                }),
                ("in a buffer, each its own element", &|k| {
                    let at = k.xor(k.i, GROUP - 1);
                    k.write(k.raw, at, k.i);
                    k.write(k.raw, at, k.own);
                }),
            ],
            [
                ("the next round begins before all have read", &|k| {
                    let (tile, at) = (k.tile("tile", GROUP), k.xor(k.own, 3));
                    for round in 0..2 {
                        let value = k.plus(k.i, round);
                        k.write(tile, k.own, value);
                        k.b.barrier();
                        k.read(tile, at);
                    }
                }),
                ("each round ends with a barrier", &|k| {
                    let (tile, at) = (k.tile("tile", GROUP), k.xor(k.own, 3));
                    for round in 0..2 {
                        let value = k.plus(k.i, round);
                        k.write(tile, k.own, value);
                        k.b.barrier();
                        k.read(tile, at);
                        k.b.barrier();
                    }
                }),
            ],
        ],
    );
}

#[test]
fn races_between_groups() {
    check(
        |finding| is_race(finding, false),
        &[
            [
                ("the same element of the next group", &|k| {
                    let at = k.xor(k.i, GROUP);
                    k.write(k.raw, k.i, k.i);
                    k.b.barrier();
                    k.write(k.raw, at, k.own);
                }),
                ("the mirrored element of the own group", &|k| {
                    let at = k.xor(k.i, GROUP - 1);
                    k.write(k.raw, k.i, k.i);
                    k.b.barrier();
                    k.write(k.raw, at, k.own);
                }),
            ],
            [
                ("the first item of each group writes one element", &|k| {
                    let (is_first, to, group, zero) =
                        (k.is_below(k.own, 1), k.to, k.group, k.int(0));
                    k.b.if_then(is_first, |b| b.store(to, zero, group));
                }),
                ("the first item of each group writes the same value", &|k| {
                    let (is_first, to, seven, zero) =
                        (k.is_below(k.own, 1), k.to, k.int(7), k.int(0));
                    k.b.if_then(is_first, |b| b.store(to, zero, seven));
                }),
            ],
            [
                ("a group reads what the others count", &|k| {
                    let (is_first, to, raw, group, zero, one) =
                        (k.is_below(k.own, 1), k.to, k.raw, k.group, k.int(0), k.int(1));
                    k.b.if_then(is_first, |b| {
                        b.atomic(AtomicRmwOp::Add, to, zero, one);
                        let value = b.load(to, zero);
                        b.store(raw, group, value);
                    });
                }),
                ("a group counts, and takes what it has got", &|k| {
                    let (is_first, to, raw, group, zero, one) =
                        (k.is_below(k.own, 1), k.to, k.raw, k.group, k.int(0), k.int(1));
                    k.b.if_then(is_first, |b| {
                        let value = b.atomic(AtomicRmwOp::Add, to, zero, one);
                        b.store(raw, group, value);
                    });
                }),
            ],
        ],
    );
}

#[test]
fn divergent_barriers() {
    let pairs: [[Case<'_>; 2]; 4] = [
        [
            ("half of the group", &|k| {
                let is_low = k.is_below(k.own, GROUP / 2);
                k.b.if_then(is_low, |b| b.barrier());
            }),
            ("all of the group", &|k| {
                let is_low = k.is_below(k.own, GROUP);
                k.b.if_then(is_low, |b| b.barrier());
            }),
        ],
        [
            ("a round for each item's number", &|k| {
                let (zero, one, own) = (k.int(0), k.int(1), k.own);
                k.b.for_range(zero, own, one, |b, _| b.barrier());
            }),
            ("a round for each group's number", &|k| {
                let (zero, one, group) = (k.int(0), k.int(1), k.group);
                k.b.for_range(zero, group, one, |b, _| b.barrier());
            }),
        ],
        [
            ("some have returned", &|k| {
                let is_low = k.is_below(k.own, 3);
                k.b.return_if(is_low);
                k.b.barrier();
            }),
            ("a whole group has returned", &|k| {
                let is_low = k.is_below(k.group, 1);
                k.b.return_if(is_low);
                k.b.barrier();
            }),
        ],
        [
            ("two barriers on two paths", &|k| {
                let is_low = k.is_below(k.own, 1);
                k.b.if_else(is_low, |b| b.barrier(), |b| b.barrier());
            }),
            ("one barrier behind two paths", &|k| {
                let (is_low, to, i) = (k.is_below(k.own, 1), k.to, k.i);
                k.b.if_else(is_low, |b| b.store(to, i, i), |_| {});
                k.b.barrier();
            }),
        ],
    ];
    for arch in MACHINES {
        for [(wrong, build), (near, right)] in &pairs {
            match outcome(arch, build) {
                Outcome::Trapped(TrapKind::DivergentBarrier { .. } | TrapKind::Deadlock { .. }) => {
                }
                Outcome::Trapped(kind) => panic!("{wrong} on {arch}: {kind:?}"),
                Outcome::Found(list) => panic!("{wrong} on {arch}: {list:?}"),
                Outcome::Right => panic!("{wrong} on {arch}: nothing was found"),
            }
            assert!(matches!(outcome(arch, right), Outcome::Right), "{near} on {arch}");
        }
    }
}
