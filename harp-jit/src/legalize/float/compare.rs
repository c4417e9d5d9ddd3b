//! Comparisons, minimum and maximum, signs: operations without arithmetic on floats.

use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};

use super::soft::Soft;

impl Soft<'_, '_> {
    /// The truth value of a comparison.
    pub(super) fn float_compare(&mut self, condition: FloatCC, x: Value, y: Value) -> Value {
        let (x_magnitude, y_magnitude) = (self.magnitude(x), self.magnitude(y));
        let [_, larger] = self.order(x_magnitude, y_magnitude);
        let nan = self.is_nan(larger);
        let (numbers, or_unordered) = match condition {
            FloatCC::Ordered => return self.inverse(nan),
            FloatCC::Unordered => return nan,
            FloatCC::Equal => (IntCC::Equal, false),
            FloatCC::NotEqual => (IntCC::NotEqual, true),
            FloatCC::OrderedNotEqual => (IntCC::NotEqual, false),
            FloatCC::UnorderedOrEqual => (IntCC::Equal, true),
            FloatCC::LessThan => (IntCC::SignedLessThan, false),
            FloatCC::LessThanOrEqual => (IntCC::SignedLessThanOrEqual, false),
            FloatCC::GreaterThan => (IntCC::SignedGreaterThan, false),
            FloatCC::GreaterThanOrEqual => (IntCC::SignedGreaterThanOrEqual, false),
            FloatCC::UnorderedOrLessThan => (IntCC::SignedLessThan, true),
            FloatCC::UnorderedOrLessThanOrEqual => (IntCC::SignedLessThanOrEqual, true),
            FloatCC::UnorderedOrGreaterThan => (IntCC::SignedGreaterThan, true),
            FloatCC::UnorderedOrGreaterThanOrEqual => (IntCC::SignedGreaterThanOrEqual, true),
        };
        // Sign and magnitude as one integer, which is in the order of the floats, with equal zeros.
        let mut key = |value: Value, magnitude: Value| {
            let sign = self.sign_mask(value);
            self.negate_if(sign, magnitude)
        };
        let (x, y) = (key(x, x_magnitude), key(y, y_magnitude));
        let holds = self.is(x, numbers, y);
        if or_unordered {
            return self.or(holds, nan);
        }
        let ordered = self.inverse(nan);
        self.and(holds, ordered)
    }

    /// The negated truth value.
    fn inverse(&mut self, truth: Value) -> Value {
        self.xor(truth, 1)
    }

    /// The lesser of two floats; -0 is less than 0, and a NaN takes precedence.
    pub(super) fn float_min(&mut self, x: Value, y: Value) -> Value {
        let (x_key, y_key) = (self.order_key(x), self.order_key(y));
        let below = self.is(x_key, IntCC::SignedLessThan, y_key);
        let least = self.select(below, x, y);
        self.unless_nan(x, y, least)
    }

    /// The greater of two floats; 0 is greater than -0, and a NaN takes precedence.
    pub(super) fn float_max(&mut self, x: Value, y: Value) -> Value {
        let (x_key, y_key) = (self.order_key(x), self.order_key(y));
        let below = self.is(x_key, IntCC::SignedLessThan, y_key);
        let greatest = self.select(below, y, x);
        self.unless_nan(x, y, greatest)
    }

    /// Signed integers in the order of the floats, zeros included.
    fn order_key(&mut self, x: Value) -> Value {
        let mask = self.sign_mask(x);
        let mask = self.shr(mask, 1);
        self.xor(x, mask)
    }

    fn unless_nan(&mut self, x: Value, y: Value, result: Value) -> Value {
        let (x_magnitude, y_magnitude) = (self.magnitude(x), self.magnitude(y));
        let y_nan = self.is_nan(y_magnitude);
        let result = self.select(y_nan, y, result);
        let x_nan = self.is_nan(x_magnitude);
        self.select(x_nan, x, result)
    }

    /// `x` with the sign of `y`.
    pub(super) fn copy_sign(&mut self, x: Value, y: Value) -> Value {
        let magnitude = self.magnitude(x);
        let sign = self.sign(y);
        self.or(magnitude, sign)
    }
}
