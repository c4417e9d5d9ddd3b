#!/usr/bin/env python3
"""Computes the constants of harp-libm: `python3 coefficients.py > src/coefficients.rs`, with mpmath.

A polynomial is a weighted least-squares fit at the zeros of a Chebyshev polynomial of four times as many points as it
has coefficients, which is within a small factor of the minimax polynomial (Trefethen, Approximation Theory and
Approximation Practice, 2013, chapter 16). The weight makes the error relative to the function's result. The degree is
the smallest whose largest error, measured on a finer grid, is below the target. Each comment gives log2 of that error.
"""

import struct
import sys

from mpmath import mp, mpf, matrix, qr_solve, cos, pi, exp, log, sin, atan, asin, erf, erfc, gamma, loggamma
from mpmath import sqrt, floor, log10, log1p, expm1

mp.prec = 400

DIGITS = {"f32": 24, "f64": 53}


def nearest(x, float_type):
    """The float nearest to x, as Python's float, which holds both formats."""
    if float_type == "f64":
        with mp.workprec(53):
            return float(+x)
    with mp.workprec(24):
        return float(+x)


def literal(x, float_type):
    """The shortest decimal that reads as the float."""
    if float_type == "f64":
        text = repr(x)
    else:
        for digits in range(1, 12):
            text = f"{x:.{digits}g}"
            if struct.pack("f", float(text)) == struct.pack("f", x):
                break
    mantissa, _, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return mantissa + (f"e{int(exponent)}" if exponent else "")


def nodes(low, high, count):
    return [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def fit(function, weight, low, high, degree):
    """The coefficients, lowest first, and the largest weighted error."""
    mp.prec = 250
    at = nodes(low, high, 4 * (degree + 1))
    weights = [weight(x) for x in at]
    rows = matrix(len(at), degree + 1)
    values = matrix(len(at), 1)
    for i, x in enumerate(at):
        power = weights[i]
        for j in range(degree + 1):
            rows[i, j] = power
            power *= x
        values[i] = weights[i] * function(x)
    solution, _ = qr_solve(rows, values)
    coefficients = [solution[j] for j in range(degree + 1)]

    def error(x):
        value = mpf(0)
        for c in reversed(coefficients):
            value = value * x + c
        return abs((value - function(x)) * weight(x))

    largest = max(error(x) for x in nodes(low, high, 16 * (degree + 1)) + [low, high])
    mp.prec = 400
    return coefficients, largest


def polynomial(name, doc, function, weight, low, high, spare=3):
    """Prints a polynomial whose error is below 2^-(digits + spare)."""
    low, high = mpf(low), mpf(high)
    print(f"/// {doc}")
    print(f"pub(crate) const {name}: Polynomial = Polynomial {{")
    for float_type, field in [("f32", "single"), ("f64", "double")]:
        target = mpf(2) ** -(DIGITS[float_type] + spare)
        degree = 1
        step = 4
        errors = {}
        def reaches(degree):
            errors[degree] = fit(function, weight, low, high, degree)
            return errors[degree][1] < target
        while not reaches(degree):
            degree += step
        while degree > 1 and reaches(degree - 1):
            degree -= 1
        coefficients, largest = errors[degree]
        print(f"    // Degree {degree}, error 2^{float(mp.log(largest, 2)):.1f}.")
        numbers = ", ".join(literal(nearest(c, float_type), float_type) for c in coefficients)
        print(f"    {field}: &[{numbers}],")
        print(f"{name}: degree {degree}, 2^{float(mp.log(largest, 2)):.1f}", file=sys.stderr)
    print("};\n")


def pair(x, float_type):
    high = nearest(x, float_type)
    return literal(high, float_type), literal(nearest(x - mpf(high), float_type), float_type)


def constant(name, doc, x):
    """Prints a number in two floats."""
    print(f"/// {doc}")
    single, double = pair(x, "f32"), pair(x, "f64")
    print(f"pub(crate) const {name}: Constant = Constant {{")
    print(f"    single: ({single[0]}, {single[1]}),")
    print(f"    double: ({double[0]}, {double[1]}),")
    print("};\n")


def short(name, doc, x, bits):
    """Prints a number in two floats, the first of which has few bits."""
    print(f"/// {doc}")
    print(f"pub(crate) const {name}: Constant = Constant {{")
    for float_type, field in [("f32", "single"), ("f64", "double")]:
        with mp.workprec(bits[float_type]):
            high = +x
        low = nearest(x - high, float_type)
        print(f"    {field}: ({literal(float(high), float_type)}, {literal(low, float_type)}),")
    print("};\n")


def thirds(name, doc, x):
    """Prints a number as a sum of three floats."""
    print(f"/// {doc}")
    print(f"pub(crate) const {name}: Thirds = Thirds {{")
    for float_type, field in [("f32", "single"), ("f64", "double")]:
        parts, rest = [], x
        for _ in range(3):
            parts.append(nearest(rest, float_type))
            rest -= mpf(parts[-1])
        print(f"    {field}: [{', '.join(literal(part, float_type) for part in parts)}],")
    print("};\n")


def words(name, doc, x, bits, count):
    """Prints the first bits of a number below 1, behind a word of zeros."""
    mp.prec = bits * count + 100
    print(f"/// {doc}")
    print(f"pub(crate) const {name}: [u{bits}; {count + 1}] = [")
    print("    0,")
    rest = x()
    for _ in range(count):
        rest *= mpf(2) ** bits
        word = int(floor(rest))
        rest -= word
        text = f"{word:0{bits // 4}x}"
        print("    0x" + "_".join(text[i:i + 4] for i in range(0, len(text), 4)) + ",")
    print("];\n")
    mp.prec = 400


def lanczos(name, doc, sizes):
    """Prints z times Lanczos's sum as a fraction over (z+1)...(z+n-2), and the parameter."""
    print(f"/// {doc}")
    print(f"pub(crate) const {name}: Lanczos = Lanczos {{")
    for float_type, field in [("f32", "single"), ("f64", "double")]:
        count, g = sizes[float_type]
        g = mpf(g)
        # The sum is exact at z = 1 ... n: a linear system for the numerator's n coefficients.
        def exact(z):
            return gamma(z) / exp((z - 0.5) * log(z + g - 0.5) - (z + g - 0.5))
        def denominator(z):
            value = mpf(1)
            for k in range(count - 1):
                value *= z + k
            return value
        rows, values = matrix(count, count), matrix(count, 1)
        for i in range(count):
            z = mpf(i + 1)
            for j in range(count):
                rows[i, j] = z ** j
            values[i] = exact(z) * denominator(z)
        numerator = mp.lu_solve(rows, values)
        def error(z):
            value = sum(numerator[j] * z ** j for j in range(count)) / denominator(z)
            return abs(value / exact(z) - 1)
        limit = 36 if float_type == "f32" else 172
        largest = max(error(mpf(i) * limit / 2000 + mpf(1) / 1000) for i in range(2000))
        # Powers of the denominator, by multiplying its factors out.
        product = [1]
        for k in range(1, count - 1):
            product = [k * a + b for a, b in zip(product + [0], [0] + product)]
        print(f"    // Error 2^{float(mp.log(largest, 2)):.1f}.")
        print(f"{name}: {count}, {float(g)}: 2^{float(mp.log(largest, 2)):.1f}", [float(x) for x in numerator], file=sys.stderr)
        print(f"    {field}_g: {literal(nearest(g, float_type), float_type)},")
        print(f"    {field}_numerator: &[" + ", ".join(literal(nearest(x, float_type), float_type) for x in numerator) + "],")
        print(f"    {field}_denominator: &[" + ", ".join(literal(float(x), float_type) for x in product) + "],")
    print("};\n")


def near_zero(series, function):
    """A function with a removable singularity at 0, where the first coefficient of its series replaces it."""
    return lambda x: series if abs(x) < mpf(2) ** -60 else function(x)


def main():
    print(HEAD)
    ln2 = log(2)
    constant("LN_2", "ln 2", ln2)
    constant("LOG2_E", "log2 e", 1 / ln2)
    constant("LOG10_E", "log10 e", 1 / log(10))
    constant("LOG2_10", "log2 10", log(10) / ln2)
    constant("LN_10", "ln 10", log(10))
    # Exponents of 2 have at most 8 or 11 bits.
    bits = {"f32": 16, "f64": 42}
    short("LN_2_SHORT", "ln 2, of which products of the first part with exponents are exact", ln2, bits)
    short("LOG10_2_SHORT", "log10 2, of which products of the first part with exponents are exact", log10(2), bits)
    constant("PI", "π", +pi)
    constant("PI_OVER_2", "π/2", pi / 2)
    constant("RECIPROCAL_PI", "1/π", 1 / pi)
    constant("TWO_THIRDS", "2/3", mpf(2) / 3)
    constant("LN_SQRT_2_PI", "ln √(2π)", log(2 * pi) / 2)
    thirds("PI_OVER_2_THIRDS", "π/2", pi / 2)
    words("TWO_OVER_PI_32", "The bits of 2/π for binary32: below its largest exponent, and three words more.",
          lambda: 2 / +pi, 32, 8)
    words("TWO_OVER_PI_64", "The bits of 2/π for binary64.", lambda: 2 / +pi, 64, 20)

    half = ln2 / 2 * mpf("1.01")
    polynomial("EXP", "(e^r - 1 - r) / r² for |r| up to ln(2)/2.",
               near_zero(mpf(1) / 2, lambda r: (expm1(r) - r) / r ** 2),
               lambda r: abs(r ** 2 / expm1(r)), -half, half)

    s_max = ((sqrt(2) - 1) / (sqrt(2) + 1)) * mpf("1.01")
    def log_ratio(z):
        s = sqrt(z)
        return (log((1 + s) / (1 - s)) / s - 2) / z
    polynomial("LOG", "(ln((1 + s) / (1 - s)) - 2s) / s³ in s².",
               near_zero(mpf(2) / 3, log_ratio), lambda z: z / 2, 0, s_max ** 2)
    polynomial("LOG_TAIL", "What is left of it without its first term, 2/3, divided by s².",
               near_zero(mpf(2) / 5, lambda z: (log_ratio(z) - mpf(2) / 3) / z), lambda z: z ** 2 / 2, 0, s_max ** 2,
               spare=12)

    quarter = (pi / 4 * mpf("1.001")) ** 2
    polynomial("SIN", "(sin r - r) / r³ in r² for |r| up to π/4.",
               near_zero(mpf(-1) / 6, lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z),
               near_zero(mpf(0), lambda z: z * sqrt(z) / sin(sqrt(z))), 0, quarter)
    polynomial("COS", "(cos r - 1 + r²/2) / r⁴ in r² for |r| up to π/4.",
               near_zero(mpf(1) / 24, lambda z: (cos(sqrt(z)) - 1 + z / 2) / z ** 2),
               lambda z: z ** 2 / cos(sqrt(z)), 0, quarter)

    polynomial("ATAN", "(atan t - t) / t³ in t² for |t| up to tan(π/8).",
               near_zero(mpf(-1) / 3, lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z),
               near_zero(mpf(0), lambda z: z * sqrt(z) / atan(sqrt(z))), 0, (sqrt(2) - 1) ** 2 * mpf("1.001"))
    polynomial("ASIN", "(asin t - t) / t³ in t² for |t| up to 1/2.",
               near_zero(mpf(1) / 6, lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z),
               near_zero(mpf(0), lambda z: z * sqrt(z) / asin(sqrt(z))), 0, mpf("0.2501"))

    polynomial("ERF", "erf x / x in x² for |x| up to 1.",
               near_zero(2 / sqrt(pi), lambda z: erf(sqrt(z)) / sqrt(z)),
               near_zero(sqrt(pi) / 2, lambda z: sqrt(z) / erf(sqrt(z))), 0, 1)
    shift = mpf(ERFC_SHIFT)
    def scaled_erfc(t):
        x = shift * (1 + t) / (1 - t)
        return (1 + 2 * x) * exp(x * x) * erfc(x)
    limit = mpf(28)
    print(f"/// The constant k of `ERFC`.\npub(crate) const ERFC_SHIFT: f64 = {ERFC_SHIFT};\n")
    polynomial("ERFC", "(1 + 2x) exp(x²) erfc x in t = (x - k) / (x + k) for x from 0 to 28.",
               scaled_erfc, lambda t: 1 / scaled_erfc(t), -1, (limit - shift) / (limit + shift), spare=1)

    lanczos("LANCZOS", "z times the sum of Lanczos's approximation of the gamma function.", {"f32": (6, "5.125"), "f64": (12, "11.25")})

    def between(x):
        y = x + mpf("1.5")
        return loggamma(y).real / ((y - 1) * (y - 2))
    polynomial("LGAMMA", "ln Γ(y) / ((y - 1)(y - 2)) in y - 3/2 for y from 1 to 2.", between, lambda x: 1 / between(x),
               mpf("-0.499999"), mpf("0.4999991"), spare=1)
    def stirling(w):
        z = 1 / sqrt(w)
        return z * (loggamma(z).real - ((z - 0.5) * log(z) - z + log(2 * pi) / 2))
    polynomial("STIRLING", "z (ln Γ(z) - (z - 1/2) ln z + z - ln √(2π)) in 1/z² for z from 3.",
               near_zero(mpf(1) / 12, stirling), lambda w: sqrt(w) / (loggamma(1 / sqrt(w)).real) if w > 0 else mpf(0),
               mpf("1e-10"), mpf(1) / 9 * mpf("1.001"), spare=2)


ERFC_SHIFT = "3.75"

HEAD = """//! The constants, as computed by `coefficients.py`, which says how.
#![cfg_attr(rustfmt, rustfmt_skip)]
#![expect(clippy::approx_constant, reason = "each constant stands here for both formats, and with what it lacks")]

use crate::format::{Constant, Lanczos, Polynomial, Thirds};
"""

if __name__ == "__main__":
    main()
