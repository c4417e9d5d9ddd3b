//! Modules, machines and launches for tests.

use std::path::Path;
use std::{fmt, fs};

use harp_isa::{ArchId, WordSize};
use harp_jit::{CompileOptions, DivergenceStrategy, Kernel};
use harp_runtime::{
    Arg, Buffer, Checks, Device, DeviceConfig, Element, Findings, LaunchConfig, LaunchError, Report,
};
use harp_spirv::SpirvModule;

/// How clang compiled a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Unoptimized,
    Optimized,
}

/// All strategies that need no profile.
pub(crate) const STRATEGIES: [DivergenceStrategy; 4] = [
    DivergenceStrategy::SplitJoin,
    DivergenceStrategy::Predicate,
    DivergenceStrategy::Static,
    DivergenceStrategy::Adaptive,
];

/// The bytes of a file in the folder of modules.
pub(crate) fn bytes(file: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/modules");
    fs::read(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The name of the module that clang made for a machine's addresses.
pub(crate) fn file(name: &str, word: WordSize, level: Level) -> String {
    let bits = match word {
        WordSize::Four => 32,
        WordSize::Eight => 64,
    };
    let level = match level {
        Level::Unoptimized => "O0",
        Level::Optimized => "O2",
    };
    format!("{name}.{bits}.{level}.spv")
}

/// The module that clang made for a machine's addresses.
pub(crate) fn module(name: &str, arch: ArchId, level: Level) -> SpirvModule {
    let file = file(name, arch.word(), level);
    SpirvModule::parse(&bytes(&file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Both word sizes, with the extension and without.
pub(crate) const MACHINES: [&str; 4] =
    ["4w32/16/32/16+x", "harp32", "8w32/32/16/16+x", "8w12/5/8/8"];

/// A module on a machine, compiled with a strategy.
pub(crate) struct Case {
    pub arch: ArchId,
    pub level: Level,
    pub divergence: DivergenceStrategy,
    pub module: SpirvModule,
    pub device: Device,
}

impl Case {
    /// A buffer with these elements.
    pub(crate) fn buffer<T: Element>(&self, elements: &[T]) -> Buffer<T> {
        self.device.buffer_from_slice(elements).unwrap()
    }

    /// A buffer of zeros.
    pub(crate) fn zeros<T: Element>(&self, len: usize) -> Buffer<T> {
        self.device.buffer_zeroed(len).unwrap()
    }

    /// The elements of a buffer.
    pub(crate) fn read<T: Element>(&self, buffer: &Buffer<T>) -> Vec<T> {
        self.device.read(buffer).unwrap()
    }

    pub(crate) fn kernel(&self, name: &str) -> Kernel {
        let kernel = match self.is_checked() {
            true => self.module.clone().with_variables_in_memory().kernel(name, self.arch),
            false => self.module.kernel(name, self.arch),
        };
        let kernel = kernel.unwrap_or_else(|error| panic!("{name} for {self}: {error}"));
        let options = CompileOptions {
            divergence: self.divergence,
            report_accesses: self.is_checked(),
            ..CompileOptions::default()
        };
        kernel.compile(&options).unwrap_or_else(|error| panic!("{name} for {self}: {error}"))
    }

    /// Whether launches are checked, in which nothing may be found, unless their configuration has other checks. Then variables are
    /// in memory.
    pub(crate) fn is_checked(&self) -> bool {
        let machine = self.arch.to_string();
        match self.level {
            Level::Unoptimized => machine == "4w32/16/32/16+x",
            Level::Optimized => machine == "8w32/32/16/16+x",
        }
    }

    /// Launches a kernel.
    pub(crate) fn launch(&self, kernel: &str, config: LaunchConfig, args: &[Arg]) -> Report {
        self.run(&self.kernel(kernel), config, args)
    }

    /// Launches a kernel that is compiled.
    pub(crate) fn run(&self, kernel: &Kernel, config: LaunchConfig, args: &[Arg]) -> Report {
        let mut checks = Checks::all();
        // Clang and naga move vectors and structures in pieces of any type.
        checks.types = false;
        let mut config = config;
        config.checks = kernel.reports_accesses().then(|| config.checks.unwrap_or(checks));
        let launched = self.device.launch(kernel, config, args);
        launched.unwrap_or_else(|error| panic!("{} on {self}: {error}", kernel.name()))
    }

    /// What a launch finds, which must be something; none if launches are not checked here.
    pub(crate) fn found(
        &self,
        kernel: &str,
        config: LaunchConfig,
        args: &[Arg],
    ) -> Option<Box<Findings>> {
        let kernel = self.kernel(kernel);
        kernel.reports_accesses().then(|| match self.device.launch(&kernel, config, args) {
            Err(LaunchError::Findings(findings)) => findings,
            Err(error) => panic!("{} on {self}: {error}", kernel.name()),
            Ok(_) => panic!("{} on {self}: nothing is found", kernel.name()),
        })
    }

    /// Launches a kernel for a line of work-items.
    pub(crate) fn line(&self, kernel: &str, len: usize, args: &[Arg]) -> Report {
        self.launch(kernel, LaunchConfig::grid_1d(len), args)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {:?} code by {:?}", self.arch, self.level, self.divergence)
    }
}

/// Tests a module that clang made, on all machines; the strategies take turns.
pub(crate) fn everywhere(name: &str, test: impl Fn(&Case)) {
    for (number, id) in MACHINES.into_iter().enumerate() {
        let arch: ArchId = id.parse().unwrap();
        for level in [Level::Unoptimized, Level::Optimized] {
            let divergence = STRATEGIES[(number + level as usize) % STRATEGIES.len()];
            let device = Device::new(DeviceConfig::new(arch)).unwrap();
            test(&Case { arch, level, divergence, module: module(name, arch, level), device });
        }
    }
}

/// Numbers that seem random, the same in every run (Marsaglia, "Xorshift RNGs", 2003).
pub(crate) fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed | 1;
    std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state.wrapping_mul(0x2545_f491_4f6c_dd1d))
    })
}

/// The product of the bytes of two words, each taken with or without signs.
pub(crate) fn dot_of_bytes(x: u32, y: u32, signs: [bool; 2]) -> i64 {
    let number = |byte: u8, signed| match signed {
        true => i64::from(byte.cast_signed()),
        false => i64::from(byte),
    };
    let bytes = x.to_le_bytes().into_iter().zip(y.to_le_bytes());
    bytes.map(|(x, y)| number(x, signs[0]) * number(y, signs[1])).sum()
}
