//! The machines that random tests run on.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use harp_isa::ArchId;
use harp_runtime::{Device, DeviceConfig, LaunchConfig, Tier};

use crate::oracle::{Case, CaseError, Code, Compiled, Observed};

/// 1 to 64 lanes, 2 to 64 predicates, 8 to 64 general registers, both word sizes and encodings, with and
/// without the extension, six machines of each family; counts that are no powers of two, too.
pub const ALL: &[&str] = [
    ["harp32", "4w8/2/1/1", "4b8/2/8/2"],
    ["4w16/4/2/4", "4w64/8/64/1", "4b12/64/32/1"],
    ["4w32/16/32/2+x", "4b64/64/64/1+x", "4b8/3/2/2+x"],
    ["4w8/8/16/2+x", "4w16/2/8/1+x", "4b8/2/1/3+x"],
    ["harp64", "8w8/2/64/1", "8b64/64/32/1"],
    ["8b8/2/2/4", "8w12/5/8/3", "8w63/64/1/1"],
    ["8w16/16/8/2+x", "8b8/2/16/1+x", "8w64/2/1/2+x"],
    ["8b32/64/32/1+x", "8w9/3/64/1+x", "8w8/8/2/2+x"],
]
.as_flattened();

/// Others, one of each family, with the most registers and predicates in a word and other odd numbers: for what is about
/// numbers and memory, not about lanes.
pub const ODD: &[&str] = &["4w63/64/4/4", "4w12/5/4/2+x", "8w63/2/1/1", "8w63/64/2/2+x"];

/// A few that span what [`ALL`] do, for tests that run the same on each.
pub const FEW: &[&str] = [
    ["harp32", "harp64", "4w32/16/8/2+x", "8w16/16/4/2+x", "8b8/2/16/1+x"],
    ["4b16/16/2/1", "4w8/2/4/2", "8b64/64/16/1", "4w64/64/1/1", "8w8/2/64/1"],
]
.as_flattened();

/// Machines whose lanes share registers: few shared ones and many, without shared predicates, 1 to 64 lanes, without
/// extension X, both words and encodings.
pub const SHARED: &[&str] = &[
    "4w24/12/32/16+x+s8/4",
    "4w16/8/4/2+x+s16/8",
    "8w32/32/16/16+x+s2/1",
    "4b16/16/16/8+x+s8",
    "8b8/8/64/2+s24/8",
    "4w8/8/8/4+s1",
    "8w16/8/1/4+x+s4/4",
];

/// The machines of a list.
pub fn parsed(list: &'static [&'static str]) -> impl Iterator<Item = ArchId> + Clone {
    list.iter().map(|id| id.parse().expect("the lists above hold machines"))
}

/// Bytes of memory: little, as it is emptied for each launch, but enough for all stacks.
const MEMORY_BYTES: u64 = 16 << 20;

/// What a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setup {
    /// Its kind.
    pub arch: ArchId,
    /// Its cores.
    pub cores: u16,
    /// What runs its instructions.
    pub tier: Tier,
}

impl Setup {
    /// One core, interpreted.
    pub fn new(arch: ArchId) -> Setup {
        Setup { arch, cores: 1, tier: Tier::Interpreter }
    }
}

/// A machine of each setup, made when it is needed.
#[derive(Debug, Default)]
pub struct Machines(HashMap<Setup, Device>);

thread_local! {
    static MACHINES: RefCell<Machines> = RefCell::default();
}

impl Machines {
    /// Does something with the thread's machines, which are kept: making them takes longer than most launches.
    pub fn of_thread<T>(run: impl FnOnce(&mut Machines) -> T) -> T {
        let mut machines = MACHINES.take();
        let result = run(&mut machines);
        MACHINES.set(machines);
        result
    }

    /// The machine. Fails if the host does not give the memory.
    pub fn device(&mut self, setup: Setup) -> Result<&Device, CaseError> {
        let Setup { arch, cores, tier } = setup;
        Ok(match self.0.entry(setup) {
            Entry::Occupied(device) => device.into_mut(),
            Entry::Vacant(place) => {
                let config = DeviceConfig::new(arch);
                let config = DeviceConfig { memory_bytes: MEMORY_BYTES, cores, tier, ..config };
                place.insert(Device::new(config)?)
            }
        })
    }

    /// Calls or launches a compiled case. A launch has what `config` adds. Fails if it could not start.
    pub fn run(
        &mut self,
        case: &Case,
        compiled: &Compiled,
        setup: Setup,
        config: impl FnOnce(LaunchConfig) -> LaunchConfig,
    ) -> Result<Observed, CaseError> {
        match &compiled.code {
            Code::Module(module) => Ok(case.call(module)?),
            Code::Kernel(kernel) => case.launch(kernel, self.device(setup)?, config),
        }
    }
}
