//! Arguments: the edges of the formats, random numbers over all exponents, and random numbers where a function is
//! interesting.

use harp_libm::{Float, Math, Operand};

use super::Numbers;

/// Random numbers by the generator SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number between two.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, count: usize) -> usize {
        (self.bits() % count as u64) as usize
    }

    /// Any number of a format.
    fn any(&mut self, float: Float) -> f64 {
        match float {
            Float::F32 => f32::from_bits(self.bits() as u32).into(),
            Float::F64 => f64::from_bits(self.bits()),
        }
    }

    /// A number of either sign whose exponent is between two.
    fn with_exponent(&mut self, low: f64, high: f64) -> f64 {
        let magnitude = self.between(low, high).exp2();
        if self.bits() & 1 == 0 { magnitude } else { -magnitude }
    }
}

/// The numbers at which formats and functions change their behaviour, of both signs.
pub(crate) fn edges(float: Float) -> Vec<f64> {
    let (least, least_normal, most, integers): (f64, f64, f64, f64) = match float {
        Float::F32 => {
            let least = f32::from_bits(1);
            (least.into(), f32::MIN_POSITIVE.into(), f32::MAX.into(), 23.0)
        }
        Float::F64 => (f64::from_bits(1), f64::MIN_POSITIVE, f64::MAX, 52.0),
    };
    let integers = integers.exp2();
    let mut edges = vec![0.0, least, 2.0 * least, least_normal - least, least_normal, most];
    edges.extend([f64::INFINITY, f64::NAN, most / 2.0, least_normal * 2.0]);
    edges.extend([0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 7.0, 10.0, 0.1]);
    edges.extend([integers - 1.5, integers - 1.0, integers - 0.5, integers, integers + 1.0]);
    edges.extend([integers / 2.0 + 0.5, integers * 2.0, integers * 2.0 + 2.0, integers * 4.0]);
    edges.extend([32_768.0, 1_048_576.0, 31.0, 32.0, 127.0, 128.0, 129.0, 149.0, 150.0, 1e10]);
    let pi = std::f64::consts::PI;
    edges.extend([pi / 8.0, pi / 4.0, pi / 2.0, pi, 1.5 * pi, 2.0 * pi, 100.0 * pi]);
    edges.extend([std::f64::consts::LN_2, std::f64::consts::E, std::f64::consts::SQRT_2]);
    edges.extend([88.7, 89.4, 103.9, 104.0, 709.8, 710.5, 745.1, 746.0, 308.3, 323.7, 38.5, 45.2]);
    edges.extend([34.0, 35.0, 35.1, 171.0, 171.7, 10.05, 10.06, 26.5, 27.3, 40.5, 41.5, 184.5]);
    let next: Vec<f64> = edges.iter().flat_map(|&x| neighbours(x, float)).collect();
    edges.extend(next);
    edges.iter().flat_map(|&x| [rounded(x, float), -rounded(x, float)]).collect()
}

/// The floats beside a small number.
fn neighbours(x: f64, float: Float) -> [f64; 2] {
    match float {
        Float::F32 => [(x as f32).next_up().into(), (x as f32).next_down().into()],
        Float::F64 => [x.next_up(), x.next_down()],
    }
}

/// The nearest number of a format.
pub(crate) fn rounded(x: f64, float: Float) -> f64 {
    match float {
        Float::F32 => f64::from(x as f32),
        Float::F64 => x,
    }
}

/// Arguments for `math`, all edges first.
pub(crate) fn samples(math: Math, float: Float, count: usize, seed: u64) -> Vec<Numbers<3>> {
    let mut random =
        Random(seed ^ (math.name().bytes().fold(0, |hash, byte| hash * 31 + u64::from(byte))));
    let mut samples = edge_samples(math, float);
    while samples.len() < count {
        samples.push(sample(math, float, &mut random));
    }
    samples
}

/// Numbers for which functions need no rare case.
pub(crate) fn typical(math: Math, float: Float, count: usize) -> Vec<Numbers<3>> {
    let mut random = Random(7);
    let (low, high) = interval(math, float == Float::F32);
    let mut number = || rounded(random.between(low, high), float);
    match math.parameters() {
        [Operand::Float, Operand::Int] => (0..count).map(|_| [number().abs(), 3.0, 0.0]).collect(),
        _ if math == Math::Pow || math == Math::Powr => {
            (0..count).map(|_| [number().abs(), number(), 0.0]).collect()
        }
        _ => (0..count).map(|_| [number(), number(), number()]).collect(),
    }
}

const INTEGERS: [i32; 18] =
    [0, 1, 2, 3, 4, 5, 7, 8, 64, 100, 127, 128, 1000, 1023, 1024, 0x7fff_fffe, i32::MAX, -1];

fn edge_samples(math: Math, float: Float) -> Vec<Numbers<3>> {
    let edges = edges(float);
    let few: Vec<f64> = edges.iter().copied().step_by(9).chain([1.0, -1.0, 0.0, -0.0]).collect();
    match math.parameters() {
        [Operand::Float] => edges.iter().map(|&x| [x, 0.0, 0.0]).collect(),
        [Operand::Float, Operand::Int] => {
            let integers = INTEGERS.iter().flat_map(|&n| [f64::from(n), f64::from(-n)]);
            let integers: Vec<f64> = integers.chain([f64::from(i32::MIN)]).collect();
            let pair = |&x: &f64| integers.clone().into_iter().map(move |n| [x, n, 0.0]);
            edges.iter().flat_map(pair).collect()
        }
        [Operand::Float, Operand::Float] => {
            let few = &few;
            few.iter().flat_map(|&x| few.iter().map(move |&y| [x, y, 0.0])).collect()
        }
        _ => {
            let few = &few.iter().copied().step_by(3).collect::<Vec<_>>();
            let pairs = few.iter().flat_map(|&x| few.iter().map(move |&y| (x, y)));
            pairs.flat_map(|(x, y)| few.iter().map(move |&z| [x, y, z])).collect()
        }
    }
}

fn sample(math: Math, float: Float, random: &mut Random) -> Numbers<3> {
    let is_single = float == Float::F32;
    let (most, least) = if is_single { (128.0, -149.0) } else { (1024.0, -1074.0) };
    let round = |x: f64| rounded(x, float);
    match math.parameters() {
        [Operand::Float] => {
            let x = match random.below(4) {
                0 => random.any(float),
                1 => random.with_exponent(-12.0, 12.0),
                2 => random.with_exponent(-2.0, 2.0),
                _ => {
                    let (low, high) = interval(math, is_single);
                    random.between(low, high)
                }
            };
            [round(x), 0.0, 0.0]
        }
        [Operand::Float, Operand::Int] => {
            let x = match random.below(3) {
                0 => random.any(float),
                1 => random.with_exponent(-2.0, 2.0),
                _ => random.with_exponent(least, most),
            };
            let x = round(x);
            let n = match random.below(3) {
                0 => f64::from(random.bits() as i32),
                1 => random.between(-40.0, 40.0).round(),
                _ if math == Math::Pown => random.between(least, most) / x.abs().log2(),
                _ => random.between(2.0 * least, 2.0 * most),
            };
            let n = if n.is_nan() { 0.0 } else { n };
            [x, n.round().clamp(i32::MIN.into(), i32::MAX.into()), 0.0]
        }
        [Operand::Float, Operand::Float] if matches!(math, Math::Pow | Math::Powr) => {
            let x = match random.below(3) {
                0 => random.any(float).abs(),
                1 => random.with_exponent(-0.01, 0.01).abs(),
                _ => random.with_exponent(-10.0, 10.0).abs(),
            };
            let x = round(x);
            let y = match random.below(8) {
                0 => random.any(float),
                1 => random.between(-20.0, 20.0).round(),
                _ => random.between(least, most) / x.log2(),
            };
            let sign = if random.below(16) == 0 { -1.0 } else { 1.0 };
            [x * sign, round(y), 0.0]
        }
        _ => {
            let x = random.any(float);
            let mut near = || match random.below(3) {
                0 => random.any(float),
                1 => round(x * random.with_exponent(-30.0, 30.0)),
                _ => round(x * random.with_exponent(-1.5, 1.5)),
            };
            let (y, z) = (near(), near());
            let z = if random.below(2) == 0 { z } else { round(-x * y * random.between(0.9, 1.1)) };
            [x, y, z]
        }
    }
}

/// Where a function of one argument has results that are neither constant nor infinite.
fn interval(math: Math, is_single: bool) -> (f64, f64) {
    let pick = |single: (f64, f64), double: (f64, f64)| if is_single { single } else { double };
    match math {
        Math::Exp | Math::Expm1 => pick((-104.0, 89.0), (-746.0, 710.0)),
        Math::Exp2 => pick((-150.0, 128.0), (-1075.0, 1024.0)),
        Math::Exp10 => pick((-46.0, 39.0), (-324.0, 309.0)),
        Math::Sinh | Math::Cosh => pick((-90.0, 90.0), (-711.0, 711.0)),
        Math::Tgamma => pick((-43.0, 36.0), (-185.0, 172.0)),
        Math::Lgamma | Math::LgammaR => (-5.0, 10.0),
        Math::Erfc => pick((-4.0, 10.1), (-6.0, 27.3)),
        Math::Log | Math::Log2 | Math::Log10 | Math::Acosh => (0.5, 3.0),
        Math::Log1p => (-1.0, 2.0),
        Math::Acos | Math::Asin | Math::Acospi | Math::Asinpi | Math::Atanh => (-1.0, 1.0),
        _ => (-10.0, 10.0),
    }
}
