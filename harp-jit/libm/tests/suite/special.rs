//! The results that C99 (F.9) and OpenCL C (3.0, section 7.5.1) prescribe, exactly.

use harp_libm::{Float, Fma, Math};

use crate::support::machine::{Machine, usual_arch};
use crate::support::samples::rounded;

/// A function's name, its arguments, and its results. `±` stands for either sign, everywhere in the line the same,
/// and `±-` for the other one.
const PRESCRIBED: &str = include_str!("special.txt");

/// Numbers, `inf`, `nan`, `pi` and fractions of it.
fn number(text: &str, float: Float) -> f64 {
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => (-1.0, magnitude),
        None => (1.0, text),
    };
    let pi = std::f64::consts::PI;
    let (least, most) = match float {
        Float::F32 => (f64::from(f32::from_bits(1)), f64::from(f32::MAX)),
        Float::F64 => (f64::from_bits(1), f64::MAX),
    };
    let value = match magnitude {
        "pi" => rounded(pi, float),
        "pi/2" => rounded(pi / 2.0, float),
        "pi/4" => rounded(pi / 4.0, float),
        "3pi/4" => rounded(0.75 * pi, float),
        "least" => least,
        "most" => most,
        number => number.parse().unwrap_or_else(|_| panic!("{text} is no number")),
    };
    sign * value
}

fn is_same(x: f64, y: f64) -> bool {
    (x == y && x.is_sign_negative() == y.is_sign_negative()) || (x.is_nan() && y.is_nan())
}

/// A line of the table.
struct Case {
    line: String,
    args: [f64; 3],
    results: Vec<f64>,
}

impl Case {
    fn new(line: &str, float: Float) -> (Math, Case) {
        let (call, results) = line.split_once('=').expect("a line has results");
        let mut words = call.split_whitespace();
        let name = words.next().expect("a line has a function");
        let math = Math::from_name(name).unwrap_or_else(|| panic!("no function {name}"));
        let numbers = |text: &str| -> Vec<f64> {
            text.split_whitespace().map(|word| number(word, float)).collect()
        };
        let (given, results) = (numbers(&call[name.len()..]), numbers(results));
        assert_eq!(given.len(), math.parameters().len(), "{line}");
        assert_eq!(results.len(), math.results().len(), "{line}");
        let mut args = [0.0; 3];
        args[..given.len()].copy_from_slice(&given);
        (math, Case { line: line.to_owned(), args, results })
    }
}

/// The cases by function, both of those with signs.
fn cases(float: Float) -> Vec<(Math, Vec<Case>)> {
    let mut cases: Vec<(Math, Vec<Case>)> = Vec::new();
    for line in PRESCRIBED.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let signed = [line.replace('±', ""), line.replace("±-", "").replace('±', "-")];
        let forms = if line.contains('±') { &signed[..] } else { &signed[..1] };
        for line in forms {
            let (math, case) = Case::new(line, float);
            match cases.iter_mut().find(|(other, _)| *other == math) {
                Some((_, cases)) => cases.push(case),
                None => cases.push((math, vec![case])),
            }
        }
    }
    cases
}

fn check(float: Float, arch: &str, fma: Fma) {
    let mut checked = 0;
    for (math, cases) in cases(float) {
        let args: Vec<_> = cases.iter().map(|case| case.args).collect();
        let (given, _) = Machine::new(arch, math, float, fma).run(&args);
        for (case, given) in cases.iter().zip(given) {
            for (&expected, given) in case.results.iter().zip(given) {
                assert!(is_same(given, expected), "{float:?}, {arch}, {}: {given:?}", case.line);
            }
            checked += 1;
        }
    }
    assert!(checked > 350, "{checked}");
}

#[test]
fn prescribed_results_of_f32_are_exact() {
    check(Float::F32, usual_arch(Float::F32), Fma::Fast);
    check(Float::F32, "4w16/16/4/1", Fma::Slow);
}

#[test]
fn prescribed_results_of_f64_are_exact() {
    check(Float::F64, usual_arch(Float::F64), Fma::Fast);
    check(Float::F64, "8w32/16/4/1", Fma::Slow);
}
