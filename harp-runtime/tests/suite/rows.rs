//! Random kernels that access rows of memory, on machines whose lanes share registers, against one whose lanes do not.
//!
//! Addresses are a work-item's own, or some elements beside it, by numbers that lanes share: in branches on which lanes
//! disagree and in loops, in grids whose rows do not fill warps. Each work-item writes its own elements only.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Value, types};
use harp_isa::{Sharing, disassemble};
use harp_jit::{
    ArchId, BufferParam, CompileOptions, DivergenceStrategy, Kernel, KernelBuilder, KernelSource,
    Reduction, Variable,
};
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig};

const PLAIN: &str = "4w32/16/8/4+x";
const SHARED: [&str; 6] = [
    "4w24/12/32/16+x+s8/4",
    "4w16/8/4/2+x+s16/8",
    "8w32/32/16/4+x+s3/1",
    "4b16/16/16/8+x+s4",
    "8b16/8/64/2+s24/8",
    "4w16/8/8/4+s1",
];

/// Elements before and behind those of work-items.
const MARGIN: usize = 64;
/// Numbers that lanes share are below.
const LIMIT: usize = 8;
const CASES: u64 = 120;

/// Makes a kernel of the numbers that follow a seed.
struct Generator {
    state: u64,
    vars: [Variable; 3],
    from: BufferParam<i32>,
    to: BufferParam<i32>,
    /// Numbers that lanes share, words.
    shared: Vec<Value>,
    /// What work-items have their elements at: the position in the row, and in the grid.
    own: [Value; 2],
}

impl Generator {
    fn below(&mut self, limit: u64) -> u64 {
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn value(&mut self, b: &mut KernelBuilder<'_>) -> Value {
        let var = self.below(3) as usize;
        b.use_var(self.vars[var])
    }

    fn any_shared(&mut self) -> Value {
        let number = self.below(self.shared.len() as u64) as usize;
        self.shared[number]
    }

    /// An element of `from` near the work-item's own.
    fn index(&mut self, b: &mut KernelBuilder<'_>) -> Value {
        let mut index = self.own[self.below(2) as usize];
        for _ in 0..self.below(4) {
            let other = self.any_shared();
            index = match self.below(3) {
                0 => b.ins().iadd(index, other),
                1 => b.ins().isub(index, other),
                _ => b.ins().iadd_imm_s(index, 3),
            };
        }
        b.ins().iadd_imm_s(index, MARGIN as i64)
    }

    /// A word as a value.
    fn narrow(b: &mut KernelBuilder<'_>, word: Value) -> Value {
        match b.word_int() {
            types::I32 => word,
            _ => b.ins().ireduce(types::I32, word),
        }
    }

    fn assign(&mut self, b: &mut KernelBuilder<'_>) {
        let [x, y] = [self.value(b), self.value(b)];
        let value = match self.below(8) {
            0 => b.ins().iadd(x, y),
            1 => b.ins().imul(x, y),
            2..=4 => {
                let index = self.index(b);
                b.load(self.from, index)
            }
            // What lanes share, and what is computed of an index that is an address, too.
            5 => {
                let at = self.any_shared();
                b.load(self.from, at)
            }
            6 => {
                let index = self.index(b);
                Self::narrow(b, index)
            }
            _ => b.load(self.to, self.own[1]),
        };
        let mixed = b.ins().bxor(value, x);
        let var = self.below(3) as usize;
        b.def_var(self.vars[var], mixed);
    }

    fn statements(&mut self, b: &mut KernelBuilder<'_>, depth: u64) {
        for _ in 0..=self.below(4) {
            match self.below(if depth == 0 { 5 } else { 9 }) {
                0..=3 => self.assign(b),
                4 => {
                    let value = self.value(b);
                    b.store(self.to, self.own[1], value);
                }
                5 | 6 => {
                    let value = self.value(b);
                    let bit = b.ins().band_imm_u(value, 1);
                    b.if_then(bit, |b| self.statements(b, depth - 1));
                }
                7 => {
                    let (index, wide) = (self.own[0], self.any_shared());
                    let condition = b.ins().icmp(IntCC::SignedLessThan, index, wide);
                    let this = std::cell::RefCell::new(&mut *self);
                    b.if_else(
                        condition,
                        |b| this.borrow_mut().statements(b, depth - 1),
                        |b| this.borrow_mut().statements(b, depth - 1),
                    );
                }
                _ => {
                    let word = b.word_int();
                    let (start, step) = (b.ins().iconst(word, 0), b.ins().iconst(word, 1));
                    let end = self.any_shared();
                    b.for_range(start, end, step, |b, i| {
                        self.shared.push(i);
                        self.statements(b, depth - 1);
                        self.shared.pop();
                    });
                }
            }
        }
    }
}

fn kernel(seed: u64, arch: ArchId, by_rows: bool) -> Kernel {
    let mut source = KernelSource::new("rows", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (from, to) = (b.buffer::<i32>("from"), b.buffer::<i32>("to"));
    let width = b.scalar::<usize>("width");
    let shared = ["s", "t"].map(|name| b.scalar::<usize>(name)).to_vec();
    let (x, y) = (b.global_id(0), b.global_id(1));
    let row = b.ins().imul(y, width);
    let own = [x, b.ins().iadd(row, x)];
    let start = b.load(to, own[1]);
    let vars = [(); 3].map(|()| {
        let var = b.declare_var(types::I32);
        b.def_var(var, start);
        var
    });
    let state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut generator = Generator { state, vars, from, to, shared, own };
    generator.statements(&mut b, 3);
    let values = vars.map(|var| b.use_var(var));
    let sum = values.into_iter().reduce(|sum, value| b.ins().iadd(sum, value)).unwrap();
    b.store(to, own[1], sum);
    b.return_();
    b.finalize().unwrap();
    let strategies = [DivergenceStrategy::SplitJoin, DivergenceStrategy::Adaptive];
    let divergence = strategies[(seed % 2) as usize];
    let options = CompileOptions { verify: true, divergence, by_rows, ..CompileOptions::default() };
    source.compile(&options).unwrap()
}

/// What a launch on a grid of this size leaves.
fn run(
    device: &Device,
    kernel: &Kernel,
    [width, height]: [usize; 2],
    numbers: [usize; 2],
) -> Vec<i32> {
    let items = width * height;
    let value = |n: usize| (n.wrapping_mul(2_654_435_761) >> 7) as i32;
    let from: Vec<i32> = (0..items + 2 * MARGIN).map(value).collect();
    let to: Vec<i32> = (0..items).map(|n| value(n + 5)).collect();
    let [from, to] = [from, to].map(|data| device.buffer_from_slice(&data).unwrap());
    let args = [Arg::from(&from), Arg::from(&to), Arg::from(width)];
    let args = [&args[..], &numbers.map(Arg::from)].concat();
    let grid = LaunchConfig::grid_2d(width, height);
    let grid = if device.arch().has_shared() { grid.with_audit() } else { grid };
    device.launch(kernel, grid, &args).unwrap();
    device.read(&to).unwrap()
}

#[test]
fn random_rows_are_what_lanes_would_access() {
    let device = |id: &str| Device::new(DeviceConfig::new(id.parse().unwrap())).unwrap();
    let (plain, shared) = (device(PLAIN), SHARED.map(device));
    let (mut rows, mut with_rows) = (0, 0);
    for seed in 0..CASES {
        let grid = [[64, 2], [37, 3], [5, 9], [130, 1]][(seed / 2 % 4) as usize];
        let numbers = [seed as usize % LIMIT, (seed as usize + 3) % LIMIT];
        let expected = run(&plain, &kernel(seed, plain.arch(), true), grid, numbers);
        for device in &shared {
            let arch = device.arch();
            let others = kernel(seed, arch, false);
            assert!(!others.is_by_rows());
            assert_eq!(run(device, &others, grid, numbers), expected, "seed {seed} on {arch}");
            let kernel = kernel(seed, arch, true);
            let code = disassemble(kernel.code(), 0, arch).filter_map(|(_, inst)| inst.ok());
            let found = code.filter(|inst| inst.op.sharing(arch) == Sharing::Row).count();
            rows += found;
            with_rows += usize::from(found > 0);
            let place = || format!("seed {seed} on {arch}\n{}", kernel.disassembly());
            assert_eq!(run(device, &kernel, grid, numbers), expected, "{}", place());
        }
    }
    assert!(rows > 1000 && with_rows > 400, "{rows} {with_rows}");
}

/// The lanes of a warp are of one group, also where a kernel asks nothing of groups but adds up what the lanes have.
#[test]
fn lanes_that_talk_are_of_one_group() {
    const ITEMS: usize = 23;
    const GROUP: usize = 5;
    for id in SHARED.into_iter().chain([PLAIN]) {
        let device = Device::new(DeviceConfig::new(id.parse().unwrap())).unwrap();
        let mut source = KernelSource::new("sums", device.arch());
        let mut b = KernelBuilder::new(&mut source);
        let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
        let value = b.load(data, i);
        let sum = b.reduce(Reduction::Iadd, value);
        b.store(data, i, sum);
        b.return_();
        b.finalize().unwrap();
        let kernel = source.compile(&CompileOptions::default()).unwrap();
        assert!(kernel.sees_groups() && !kernel.uses_groups() && !kernel.is_by_rows());
        let data = device.buffer_from_slice(&[1; ITEMS]).unwrap();
        let config = LaunchConfig::grid_1d(ITEMS).with_groups_1d(GROUP);
        device.launch(&kernel, config, &[Arg::from(&data)]).unwrap();
        let lanes = usize::from(device.arch().lanes());
        let together = |item: usize| {
            let (first, own) = (item / GROUP * GROUP, item % GROUP);
            let in_group = (ITEMS - first).min(GROUP);
            (in_group - own / lanes * lanes).min(lanes) as i32
        };
        let expected: Vec<i32> = (0..ITEMS).map(together).collect();
        assert_eq!(device.read(&data).unwrap(), expected, "on {id}");
    }
}

/// What lanes on one side of a branch are promised to have in common is not what all lanes have, where all execute that side.
#[test]
fn what_is_promised_on_a_side_holds_there() {
    const ITEMS: usize = 100;
    for id in SHARED.into_iter().chain([PLAIN]) {
        let device = Device::new(DeviceConfig::new(id.parse().unwrap())).unwrap();
        let mut source = KernelSource::new("promise", device.arch());
        let mut b = KernelBuilder::new(&mut source);
        let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
        let own = b.load(data, i);
        let is_odd = b.ins().band_imm_u(own, 1);
        b.if_then(is_odd, |b| {
            let word = b.word_int();
            let zero = b.ins().iconst(word, 0);
            let first = b.load(data, zero);
            let first = b.assume_uniform(first);
            let half = b.ins().ushr_imm_u(first, 1);
            let sum = b.ins().iadd(half, own);
            b.store(data, i, sum);
        });
        b.return_();
        b.finalize().unwrap();
        for divergence in [DivergenceStrategy::Predicate, DivergenceStrategy::SplitJoin] {
            let options = CompileOptions { divergence, ..CompileOptions::default() };
            let kernel = source.compile(&options).unwrap();
            let given: Vec<i32> = (0..ITEMS as i32).map(|item| item + 100).collect();
            let data = device.buffer_from_slice(&given).unwrap();
            device.launch(&kernel, LaunchConfig::grid_1d(ITEMS), &[Arg::from(&data)]).unwrap();
            let expected = given.iter().map(|&own| own + 50 * (own & 1));
            let expected: Vec<i32> = expected.collect();
            assert_eq!(device.read(&data).unwrap(), expected, "{divergence:?} on {id}");
        }
    }
}
