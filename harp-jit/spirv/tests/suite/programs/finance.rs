//! Prices of options.

use harp_runtime::{Arg, LaunchConfig};

use super::{close, floats, groups, opencl, wide};
use crate::support::numbers;

fn tree_price(price: f64, strike: f64, years: f64, steps: usize) -> f64 {
    let step = years / steps as f64;
    let up = (0.3 * step.sqrt()).exp();
    let growth = (0.02 * step).exp();
    let chance = (growth - 1.0 / up) / (up - 1.0 / up);
    let mut tree: Vec<f64> = (0..=steps)
        .map(|node| (price * up.powi(2 * node as i32 - steps as i32) - strike).max(0.0))
        .collect();
    while tree.len() > 1 {
        tree = tree.windows(2).map(|v| (chance * v[1] + (1.0 - chance) * v[0]) / growth).collect();
    }
    tree[0]
}

#[test]
fn trees_give_prices() {
    let options: Vec<f32> = floats(1, 4, 5.0..30.0)
        .into_iter()
        .zip(floats(2, 4, 5.0..30.0))
        .zip(floats(3, 4, 0.25..10.0))
        .flat_map(|((price, strike), years)| [price, strike, years])
        .collect();
    let steps = 15;
    let wanted: Vec<f64> = wide(&options)
        .chunks(3)
        .map(|option| tree_price(option[0], option[1], option[2], steps))
        .collect();
    opencl("binomial_option", |case| {
        let (input, out) = (case.buffer(&options), case.zeros::<f32>(wanted.len()));
        let nodes = steps + 1;
        let args =
            [(&input).into(), (&out).into(), (steps as i32).into(), Arg::group::<f32>(nodes)];
        case.launch("price", groups(wanted.len() * nodes, nodes), &args);
        close(&case.read(&out), &wanted, 1e-5, case);
    });
}

fn normal(x: f64) -> f64 {
    const TERMS: [f64; 5] = [0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429];
    let t = 1.0 / (1.0 + 0.2316419 * x.abs());
    let sum = TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    let tail = 0.3989422804014327 * (-0.5 * x * x).exp() * sum;
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// The prices of a call and a put.
fn black_scholes(r: f64) -> [f64; 2] {
    let mix = |a: f64, b: f64| a + (b - a) * r;
    let (price, strike, years) = (mix(10.0, 100.0), mix(100.0, 10.0), mix(1.0, 10.0));
    let (rate, volatility) = (mix(0.01, 0.05), mix(0.1, 0.5));
    let spread = volatility * years.sqrt();
    let d1 = ((price / strike).ln() + (rate + 0.5 * volatility * volatility) * years) / spread;
    let d2 = d1 - spread;
    let discounted = strike * (-rate * years).exp();
    [price * normal(d1) - discounted * normal(d2), discounted * normal(-d2) - price * normal(-d1)]
}

#[test]
fn formulas_give_prices() {
    let random = floats(4, 64, 0.0..1.0);
    let wanted = |what: usize| -> Vec<f64> {
        wide(&random).into_iter().map(|r| black_scholes(r)[what]).collect()
    };
    opencl("black_scholes", |case| {
        let input = case.buffer(&random);
        let (calls, puts) = (case.zeros::<f32>(64), case.zeros::<f32>(64));
        let args = [&input, &calls, &puts].map(Arg::from);
        case.launch("single_precision", LaunchConfig::grid_2d(4, 4), &args);
        close(&case.read(&calls), &wanted(0), 2e-5, case);
        close(&case.read(&puts), &wanted(1), 2e-5, case);
        let input = case.buffer(&wide(&random)[..24]);
        let (calls, puts) = (case.zeros::<f64>(24), case.zeros::<f64>(24));
        let args = [&input, &calls, &puts].map(Arg::from);
        case.launch("double_precision", LaunchConfig::grid_2d(6, 4), &args);
        close(&case.read(&calls), &wanted(0)[..24], 1e-13, case);
        close(&case.read(&puts), &wanted(1)[..24], 1e-13, case);
    });
}

struct Paths {
    state: [u32; 4],
}

impl Paths {
    fn uniform(&mut self) -> f64 {
        let [x, _, _, w] = self.state;
        let t = x ^ x << 11;
        self.state.rotate_left(1);
        self.state[3] = w ^ w >> 19 ^ t ^ t >> 8;
        f64::from((self.state[3] >> 8) + 1) / f64::from(1 << 24)
    }

    /// What a path pays, and how much more for each unit of the price.
    fn follow(&mut self, [price, strike, drift, spread]: [f64; 4], steps: usize) -> [f64; 2] {
        let (mut factor, mut sum) = (1.0, 0.0);
        for _ in 0..steps / 2 {
            let radius = (-2.0 * self.uniform().ln()).sqrt();
            let angle = 2.0 * std::f64::consts::PI * self.uniform();
            for normal in [angle.cos(), angle.sin()] {
                factor *= (drift + spread * radius * normal).exp();
                sum += factor / steps as f64;
            }
        }
        let payoff = price * sum - strike;
        if payoff > 0.0 { [payoff, sum] } else { [0.0; 2] }
    }
}

#[test]
fn random_paths_give_prices() {
    let (terms, steps) = ([50.0, 49.0, 0.0005, 0.02], 16);
    let seeds: Vec<u32> = numbers(5).map(|n| (n >> 32) as u32).take(4 * 8).collect();
    let wanted: Vec<[f64; 2]> = (0..seeds.len())
        .map(|n| {
            let seed = |shift: usize| seeds[n / 4 * 4 + (n + shift) % 4];
            let second = seed(1).wrapping_add(362_436_069);
            let last = seed(3).wrapping_add(88_675_123);
            Paths { state: [seed(0), second, seed(0) ^ 521_288_629, last] }.follow(terms, steps)
        })
        .collect();
    let of = |what: usize| wanted.iter().map(|path| path[what]).collect::<Vec<_>>();
    opencl("monte_carlo_asian", |case| {
        let input = case.buffer(&seeds);
        let (payoffs, slopes) = (case.zeros::<f32>(seeds.len()), case.zeros::<f32>(seeds.len()));
        let mut args = vec![(&input).into(), (&payoffs).into(), (&slopes).into()];
        args.extend(terms.map(|term| Arg::from(term as f32)));
        args.push((steps as i32).into());
        case.line("simulate", seeds.len() / 4, &args);
        close(&case.read(&payoffs), &of(0), 1e-4, case);
        close(&case.read(&slopes), &of(1), 1e-5, case);
    });
}
