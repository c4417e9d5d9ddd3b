//! The functions: their names in OpenCL.std, parameters, results and accuracy.

use cranelift_codegen::ir::{AbiParam, Signature, Type, types};
use cranelift_codegen::isa::CallConv;

/// A format of floats that functions compute in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float {
    /// binary32, OpenCL's `float`.
    F32,
    /// binary64, OpenCL's `double`.
    F64,
}

impl Float {
    /// CLIF's type.
    pub fn ty(self) -> Type {
        match self {
            Float::F32 => types::F32,
            Float::F64 => types::F64,
        }
    }

    /// CLIF's type of integers with as many bits.
    pub fn int(self) -> Type {
        match self {
            Float::F32 => types::I32,
            Float::F64 => types::I64,
        }
    }
}

/// What a parameter or a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operand {
    /// A float of the function's format.
    Float,
    /// OpenCL's `int`: 32 bits, signed.
    Int,
    /// An unsigned integer with as many bits as the function's format.
    Bits,
}

impl Operand {
    /// CLIF's type in a function of `float`.
    pub fn ty(self, float: Float) -> Type {
        match self {
            Operand::Float => float.ty(),
            Operand::Int => types::I32,
            Operand::Bits => float.int(),
        }
    }
}

/// How far a result may be from the exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Accuracy {
    /// The exact result, rounded to the nearest float, or a result that needs no rounding.
    Exact,
    /// At most so many units in the last place away.
    Ulps(f64),
    /// The specification sets no limit.
    Unspecified,
}

const F: Operand = Operand::Float;
const I: Operand = Operand::Int;
const B: Operand = Operand::Bits;

/// A row of the table of functions.
struct Row {
    name: &'static str,
    parameters: &'static [Operand],
    results: &'static [Operand],
    accuracy: Accuracy,
}

macro_rules! functions {
    ($($(#[$doc:meta])* $math:ident $name:literal $parameters:ident -> $results:ident, $accuracy:expr;)*) => {
        /// A function of OpenCL.std.
        ///
        /// Where OpenCL has an out-pointer there is a second result.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Math {
            $($(#[$doc])* $math,)*
        }

        impl Math {
            /// All functions, in alphabetical order.
            pub const ALL: &[Math] = &[$(Math::$math,)*];

            fn row(self) -> Row {
                match self {
                    $(Math::$math => Row {
                        name: $name,
                        parameters: $parameters,
                        results: $results,
                        accuracy: $accuracy,
                    },)*
                }
            }
        }
    };
}

const F1: &[Operand] = &[F];
const F2: &[Operand] = &[F, F];
const F3: &[Operand] = &[F, F, F];
const I1: &[Operand] = &[I];
const B1: &[Operand] = &[B];
const FI: &[Operand] = &[F, I];

use Accuracy::{Exact, Ulps, Unspecified};

// The limits are those of OpenCL C 3.0, section 7.4, full profile; they are the same for both formats except for
// those of `divide`, `recip` and `sqrt`, which `Math::accuracy` knows.
functions! {
    /// Arc cosine.
    Acos "acos" F1 -> F1, Ulps(4.0);
    /// Inverse hyperbolic cosine.
    Acosh "acosh" F1 -> F1, Ulps(4.0);
    /// Arc cosine, divided by π.
    Acospi "acospi" F1 -> F1, Ulps(5.0);
    /// Arc sine.
    Asin "asin" F1 -> F1, Ulps(4.0);
    /// Inverse hyperbolic sine.
    Asinh "asinh" F1 -> F1, Ulps(4.0);
    /// Arc sine, divided by π.
    Asinpi "asinpi" F1 -> F1, Ulps(5.0);
    /// Arc tangent.
    Atan "atan" F1 -> F1, Ulps(5.0);
    /// The angle of the point with the ordinate and the abscissa given, in this order.
    Atan2 "atan2" F2 -> F1, Ulps(6.0);
    /// That angle, divided by π.
    Atan2pi "atan2pi" F2 -> F1, Ulps(6.0);
    /// Inverse hyperbolic tangent.
    Atanh "atanh" F1 -> F1, Ulps(5.0);
    /// Arc tangent, divided by π.
    Atanpi "atanpi" F1 -> F1, Ulps(5.0);
    /// Cube root.
    Cbrt "cbrt" F1 -> F1, Ulps(2.0);
    /// The least integer that is not below.
    Ceil "ceil" F1 -> F1, Exact;
    /// The first argument with the sign of the second.
    Copysign "copysign" F2 -> F1, Exact;
    /// Cosine.
    Cos "cos" F1 -> F1, Ulps(4.0);
    /// Hyperbolic cosine.
    Cosh "cosh" F1 -> F1, Ulps(4.0);
    /// Cosine of the π-fold.
    Cospi "cospi" F1 -> F1, Ulps(4.0);
    /// Quotient.
    Divide "divide" F2 -> F1, Ulps(2.5);
    /// Error function.
    Erf "erf" F1 -> F1, Ulps(16.0);
    /// Complementary error function.
    Erfc "erfc" F1 -> F1, Ulps(16.0);
    /// Exponential.
    Exp "exp" F1 -> F1, Ulps(3.0);
    /// Power of 10.
    Exp10 "exp10" F1 -> F1, Ulps(3.0);
    /// Power of 2.
    Exp2 "exp2" F1 -> F1, Ulps(3.0);
    /// Exponential minus 1.
    Expm1 "expm1" F1 -> F1, Ulps(3.0);
    /// Magnitude.
    Fabs "fabs" F1 -> F1, Exact;
    /// The difference if it is positive, else 0.
    Fdim "fdim" F2 -> F1, Exact;
    /// The greatest integer that is not above.
    Floor "floor" F1 -> F1, Exact;
    /// Product plus the third argument, rounded once.
    Fma "fma" F3 -> F1, Exact;
    /// The larger of two numbers; a number wins against a NaN.
    Fmax "fmax" F2 -> F1, Exact;
    /// The smaller of two numbers; a number wins against a NaN.
    Fmin "fmin" F2 -> F1, Exact;
    /// Remainder of the truncated quotient.
    Fmod "fmod" F2 -> F1, Exact;
    /// The part above the greatest integer that is not above, and that integer.
    Fract "fract" F1 -> F2, Exact;
    /// A number between 1/2 and 1, and the exponent of 2 to scale it with.
    Frexp "frexp" F1 -> FI, Exact;
    /// The length of a hypotenuse.
    Hypot "hypot" F2 -> F1, Ulps(4.0);
    /// The exponent as an integer.
    Ilogb "ilogb" F1 -> I1, Exact;
    /// The first argument times a power of 2.
    Ldexp "ldexp" FI -> F1, Exact;
    /// Logarithm of the magnitude of the gamma function.
    Lgamma "lgamma" F1 -> F1, Unspecified;
    /// The same, and the sign of the gamma function.
    LgammaR "lgamma_r" F1 -> FI, Unspecified;
    /// Natural logarithm.
    Log "log" F1 -> F1, Ulps(3.0);
    /// Logarithm to base 10.
    Log10 "log10" F1 -> F1, Ulps(3.0);
    /// Natural logarithm of the successor.
    Log1p "log1p" F1 -> F1, Ulps(2.0);
    /// Logarithm to base 2.
    Log2 "log2" F1 -> F1, Ulps(3.0);
    /// The exponent as a float.
    Logb "logb" F1 -> F1, Exact;
    /// Product plus the third argument, rounded once or twice, whichever is faster.
    Mad "mad" F3 -> F1, Unspecified;
    /// The argument of larger magnitude.
    Maxmag "maxmag" F2 -> F1, Exact;
    /// The argument of smaller magnitude.
    Minmag "minmag" F2 -> F1, Exact;
    /// The fraction and the integral part, both with the sign of the argument.
    Modf "modf" F1 -> F2, Exact;
    /// A quiet NaN with the argument as its payload.
    Nan "nan" B1 -> F1, Exact;
    /// The next float after the first argument in the direction of the second.
    Nextafter "nextafter" F2 -> F1, Exact;
    /// The first argument to the power of the second.
    Pow "pow" F2 -> F1, Ulps(16.0);
    /// A power with an integer as its exponent.
    Pown "pown" FI -> F1, Ulps(16.0);
    /// A power of a number that is not negative.
    Powr "powr" F2 -> F1, Ulps(16.0);
    /// Reciprocal.
    Recip "recip" F1 -> F1, Ulps(2.5);
    /// Remainder of the quotient rounded to nearest.
    Remainder "remainder" F2 -> F1, Exact;
    /// The same, and the low bits of the quotient with its sign.
    Remquo "remquo" F2 -> FI, Exact;
    /// Rounding to nearest, ties to even.
    Rint "rint" F1 -> F1, Exact;
    /// The root whose degree is the second argument.
    Rootn "rootn" FI -> F1, Ulps(16.0);
    /// Rounding to nearest, ties away from zero.
    Round "round" F1 -> F1, Exact;
    /// Reciprocal of the square root.
    Rsqrt "rsqrt" F1 -> F1, Ulps(2.0);
    /// Sine.
    Sin "sin" F1 -> F1, Ulps(4.0);
    /// Sine and cosine.
    Sincos "sincos" F1 -> F2, Ulps(4.0);
    /// Hyperbolic sine.
    Sinh "sinh" F1 -> F1, Ulps(4.0);
    /// Sine of the π-fold.
    Sinpi "sinpi" F1 -> F1, Ulps(4.0);
    /// Square root.
    Sqrt "sqrt" F1 -> F1, Ulps(3.0);
    /// Tangent.
    Tan "tan" F1 -> F1, Ulps(5.0);
    /// Hyperbolic tangent.
    Tanh "tanh" F1 -> F1, Ulps(5.0);
    /// Tangent of the π-fold.
    Tanpi "tanpi" F1 -> F1, Ulps(6.0);
    /// Gamma function.
    Tgamma "tgamma" F1 -> F1, Ulps(16.0);
    /// Rounding towards zero.
    Trunc "trunc" F1 -> F1, Exact;
}

impl Math {
    /// The function with this name in OpenCL.std. The `half_` and `native_` variants are the functions
    /// themselves.
    ///
    /// ```
    /// # use harp_libm::Math;
    /// assert_eq!(Math::from_name("atan2pi"), Some(Math::Atan2pi));
    /// assert_eq!(Math::from_name("half_cos"), Some(Math::Cos));
    /// assert_eq!(Math::from_name("half_cbrt"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Math> {
        let find = |name| Math::ALL.iter().copied().find(|math| math.name() == name);
        match name.strip_prefix("half_").or_else(|| name.strip_prefix("native_")) {
            Some(base) => find(base).filter(|math| math.has_variants()),
            None => find(name).filter(|math| !math.is_variant_only()),
        }
    }

    /// The name in OpenCL.std.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What the parameters are.
    pub fn parameters(self) -> &'static [Operand] {
        self.row().parameters
    }

    /// What the results are: one or two.
    pub fn results(self) -> &'static [Operand] {
        self.row().results
    }

    /// How exact OpenCL wants the results (OpenCL C 3.0, section 7.4, full profile).
    pub fn accuracy(self, float: Float) -> Accuracy {
        match (self, float) {
            (Math::Divide | Math::Recip | Math::Sqrt, Float::F64) => Exact,
            _ => self.row().accuracy,
        }
    }

    /// CLIF's signature.
    pub fn signature(self, float: Float) -> Signature {
        let mut signature = Signature::new(CallConv::Fast);
        let of = |operands: &[Operand]| {
            operands.iter().map(|operand| AbiParam::new(operand.ty(float))).collect()
        };
        signature.params = of(self.parameters());
        signature.returns = of(self.results());
        signature
    }

    /// Whether its code is shorter than a call.
    pub fn is_small(self) -> bool {
        use Math::*;
        matches!(self, Ceil | Copysign | Divide | Fabs | Fdim | Floor | Fma | Fmax | Fmin | Fract)
            || matches!(self, Mad | Maxmag | Minmag | Modf | Nan | Recip | Rint | Round | Rsqrt)
            || matches!(self, Sqrt | Trunc)
    }

    /// Whether OpenCL.std has variants `half_` and `native_`.
    fn has_variants(self) -> bool {
        use Math::*;
        self.is_variant_only()
            || matches!(self, Cos | Exp | Exp2 | Exp10 | Log | Log2 | Log10 | Powr)
            || matches!(self, Rsqrt | Sin | Sqrt | Tan)
    }

    /// Whether there is no function without these prefixes.
    fn is_variant_only(self) -> bool {
        matches!(self, Math::Divide | Math::Recip)
    }
}
