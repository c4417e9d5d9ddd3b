//! Kernels as straight-line Rust.

use std::hint::black_box;

use harp_emu::Simd;
use pulp::x86::V3;

use super::{Case, Kernel, Mask, SHARED, START, WORDS};

/// The shared registers.
type Regs<const L: usize> = [Lanes<L>; SHARED];
type Words = [u32; 2 * WORDS];

/// What the opcodes mean.
mod ops {
    macro_rules! ops {
        ($($name:ident $a:ident $b:ident $result:expr;)*) => {
            $(#[inline(always)] pub(super) fn $name($a: u32, $b: u32) -> u32 { $result })*
        };
    }
    ops! {
        add a b a.wrapping_add(b);
        sub a b a.wrapping_sub(b);
        mul a b a.wrapping_mul(b);
        and a b a & b;
        or a b a | b;
        xor a b a ^ b;
        addi a b a.wrapping_add(b);
        subi a b a.wrapping_sub(b);
        muli a b a.wrapping_mul(b);
        andi a b a & b;
        shli a b a << b;
        shri a b a >> b;
    }
}

/// A value of all lanes, aligned so that no part of it crosses the host's cache lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lanes<const L: usize>([u32; L]);

impl<const L: usize> Lanes<L> {
    #[inline(always)]
    fn new(f: impl Fn(usize) -> u32) -> Self {
        let mut lanes = [0; L];
        for (l, lane) in lanes.iter_mut().enumerate() {
            *lane = f(l);
        }
        Lanes(lanes)
    }
}

/// `f` of the lanes; if `MASKED`, where `m` is zero, the old value.
#[inline(always)]
fn map<const L: usize, const MASKED: bool>(
    m: &Lanes<L>,
    old: &Lanes<L>,
    f: impl Fn(usize) -> u32,
) -> Lanes<L> {
    let new = Lanes::new(f);
    if !MASKED {
        return new;
    }
    // In either case the form that the compiler makes the better code of.
    match L {
        64 => Lanes::new(|l| (new.0[l] & m.0[l]) | (old.0[l] & !m.0[l])),
        _ => Lanes::new(|l| if m.0[l] != 0 { new.0[l] } else { old.0[l] }),
    }
}

/// Kernel number `KERNEL` of [`Kernel::ALL`]. Lanes where `m` is zero rest, if any do.
#[inline(always)]
fn bound<const L: usize, const KERNEL: usize, const MASKED: bool>(
    iterations: u32,
    regs: Regs<L>,
    m: &Lanes<L>,
    words: &mut Words,
) -> Regs<L> {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = regs;
    macro_rules! row {
        ($name:ident $d:ident, $a:ident, $b:ident;) => {
            $d = map::<L, MASKED>(m, &$d, |l| ops::$name($a.0[l], $b.0[l]));
        };
        ($name:ident $d:ident, $a:ident, # $imm:literal;) => {
            $d = map::<L, MASKED>(m, &$d, |l| ops::$name($a.0[l], $imm));
        };
    }
    macro_rules! rows {
        ($($name:ident $d:ident, $a:ident $(, $b:ident)? $(, # $imm:literal)?;)*) => {
            $(row!($name $d, $a $(, $b)? $(, # $imm)?;);)*
        };
    }
    let (x, y) = words.split_at_mut(WORDS);
    let x: &mut [u32; WORDS] = x.try_into().expect("the first half");
    let y: &mut [u32; WORDS] = y.try_into().expect("the second half");
    match Kernel::ALL[KERNEL] {
        Kernel::Alu => {
            for _ in 0..iterations {
                alu!(rows, a b c d e f g h);
            }
        }
        Kernel::UnitStride => {
            let mut at = 0;
            for _ in 0..iterations {
                let source: &[u32; L] = x[at..][..L].try_into().expect("L words");
                let target: &mut [u32; L] = (&mut y[at..][..L]).try_into().expect("L words");
                a = map::<L, MASKED>(m, &a, |l| source[l]);
                b = map::<L, MASKED>(m, &b, |l| target[l]);
                unit_stride!(rows, a b c d e f g h);
                *target = map::<L, MASKED>(m, &Lanes(*target), |l| a.0[l]).0;
                at = (at + L) % WORDS;
            }
        }
        Kernel::Scattered => {
            for _ in 0..iterations {
                scattered_index!(rows, a b c d e f g h);
                c = map::<L, MASKED>(m, &c, |l| c.0[l] % WORDS as u32);
                for l in 0..L {
                    if !MASKED || m.0[l] != 0 {
                        a.0[l] = x[c.0[l] as usize % WORDS];
                    }
                }
                scattered!(rows, a b c d e f g h);
                for l in 0..L {
                    if !MASKED || m.0[l] != 0 {
                        x[c.0[l] as usize % WORDS] = a.0[l];
                    }
                }
            }
        }
    }
    [a, b, c, d, e, f, g, h]
}

/// The state of the Rust side, for any number of lanes.
pub(crate) struct Host {
    case: Case,
    start: Regs<64>,
    end: Regs<64>,
    mask: Lanes<64>,
    words: Box<Words>,
    avx2: Option<V3>,
}

impl Host {
    /// The state before a run.
    ///
    /// # Panics
    ///
    /// If the case is to use vector instructions that the host lacks.
    pub(crate) fn new(case: &Case) -> Host {
        let avx2 = match case.simd {
            Simd::Detect => Some(V3::try_new().expect("a host with AVX2")),
            _ => None,
        };
        let start =
            START.map(|(factor, constant)| Lanes::new(|lane| lane as u32 * factor + constant));
        let mask = Lanes::new(|lane| if case.mask.has(lane) { u32::MAX } else { 0 });
        let words = Box::new([0; 2 * WORDS]);
        Host { case: *case, start, end: start, mask, words, avx2 }
    }

    /// Makes memory zero.
    pub(crate) fn reset(&mut self) {
        self.words.fill(0);
    }

    /// The shared registers of a lane after the run.
    pub(crate) fn registers(&self, lane: usize) -> [u32; SHARED] {
        self.end.map(|reg| reg.0[lane])
    }

    /// The arrays.
    pub(crate) fn words(&self) -> &[u32] {
        &*self.words
    }
}

/// Runs the kernel.
pub(crate) fn run_bound(host: &mut Host) {
    match (host.case.lanes, host.case.mask) {
        (8, Mask::Full) => with_kernel::<8, false>(host),
        (8, Mask::Partial) => with_kernel::<8, true>(host),
        (16, Mask::Full) => with_kernel::<16, false>(host),
        (16, Mask::Partial) => with_kernel::<16, true>(host),
        (32, Mask::Full) => with_kernel::<32, false>(host),
        (32, Mask::Partial) => with_kernel::<32, true>(host),
        (64, Mask::Full) => with_kernel::<64, false>(host),
        (64, Mask::Partial) => with_kernel::<64, true>(host),
        (lanes, _) => unreachable!("no bench has {lanes} lanes"),
    }
}

fn with_kernel<const L: usize, const MASKED: bool>(host: &mut Host) {
    match host.case.kernel {
        Kernel::Alu => Work::<L, 0, MASKED>(host).run(),
        Kernel::UnitStride => Work::<L, 1, MASKED>(host).run(),
        Kernel::Scattered => Work::<L, 2, MASKED>(host).run(),
    }
}

/// A run of which everything is known but the data, so that each is a function of its own and none
/// costs another the compiler's attention.
struct Work<'a, const L: usize, const KERNEL: usize, const MASKED: bool>(&'a mut Host);

impl<const L: usize, const KERNEL: usize, const MASKED: bool> Work<'_, L, KERNEL, MASKED> {
    fn run(self) {
        match self.0.avx2 {
            Some(avx2) => avx2.vectorize(self),
            None => self.baseline(),
        }
    }

    #[inline(never)]
    fn baseline(self) {
        pulp::NullaryFnOnce::call(self);
    }
}

impl<const L: usize, const KERNEL: usize, const MASKED: bool> pulp::NullaryFnOnce
    for Work<'_, L, KERNEL, MASKED>
{
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let host = self.0;
        let start: Regs<L> = std::array::from_fn(|r| Lanes::new(|l| host.start[r].0[l]));
        let mask = Lanes::<L>::new(|l| host.mask.0[l]);
        let (start, mask, iterations) = black_box((start, mask, host.case.iterations));
        let words = black_box(&mut *host.words);
        let end = black_box(bound::<L, KERNEL, MASKED>(iterations, start, &mask, words));
        for (reg, values) in end.iter().enumerate() {
            host.end[reg].0[..L].copy_from_slice(&values.0);
        }
    }
}
