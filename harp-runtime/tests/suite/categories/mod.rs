//! For each category of findings: kernels in which it is found, and beside each its near miss, in which nothing is.
//!
//! The categories are Oclgrind's (Price and McIntosh-Smith 2015): invalid reads and writes of each address space (of
//! constant memory reads; what writes there, traps), uninitialized memory, races within and between work-groups, barriers
//! that not all work-items reach.

mod memory;
mod sharing;

use harp_runtime::jit::ir::{StackSlotData, StackSlotKind};
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
    let FindingKind::Race { other, .. } = &finding.kind else { return false };
    (finding.access.group == other.group) == in_one_group
}
