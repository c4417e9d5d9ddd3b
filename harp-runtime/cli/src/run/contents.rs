//! What is in the buffers of a launch at its start.

use std::fs;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::super::values::{Element, ValueError, integer};
use super::arguments::Problem;
use super::spec::Contents;

/// The elements of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elements {
    pub(super) element: Element,
    pub(super) len: usize,
    /// None if nobody has written them.
    pub(super) bytes: Option<Vec<u8>>,
}

impl Elements {
    /// The elements with these bits.
    pub(super) fn of(element: Element, bits: impl Iterator<Item = u64>) -> Elements {
        let mut bytes = Vec::with_capacity(bits.size_hint().0 * element.bytes());
        bits.for_each(|bits| bytes.extend_from_slice(&bits.to_le_bytes()[..element.bytes()]));
        Elements { element, len: bytes.len() / element.bytes(), bytes: Some(bytes) }
    }

    /// What is described; at most `limit` bytes.
    pub(super) fn new(
        element: Element,
        contents: &Contents,
        limit: u64,
    ) -> Result<Elements, Problem> {
        let fits = |len: usize| {
            let bytes = len as u128 * element.bytes() as u128;
            if bytes <= limit.into() { Ok(len) } else { Err(Problem::TooLarge { bytes, limit }) }
        };
        match contents {
            Contents::Uninitialized { len } => {
                Ok(Elements { element, len: fits(*len)?, bytes: None })
            }
            Contents::Fill { len, value } => {
                let value = element.parse(value)?;
                Ok(Elements::of(element, std::iter::repeat_n(value, fits(*len)?)))
            }
            Contents::Random { len, seed, bounds } => {
                let mut next = generator(element, *seed, bounds.as_ref())?;
                Ok(Elements::of(element, (0..fits(*len)?).map(|_| next())))
            }
            Contents::Range { start, end, step } => {
                range(element, [start, end, step.as_deref().unwrap_or("1")], &fits)
            }
            Contents::File(path) => {
                let bytes = fs::read(path);
                let bytes = bytes.map_err(|source| Problem::File { path: path.clone(), source })?;
                if bytes.len() % element.bytes() != 0 {
                    return Err(Problem::FileLength { bytes: bytes.len(), element });
                }
                let len = fits(bytes.len() / element.bytes())?;
                Ok(Elements { element, len, bytes: Some(bytes) })
            }
        }
    }
}

/// The numbers from the first up to the second, by the third.
fn range(
    element: Element,
    texts: [&str; 3],
    fits: &dyn Fn(usize) -> Result<usize, Problem>,
) -> Result<Elements, Problem> {
    let empty = || Problem::EmptyRange { text: texts.join("..") };
    if element.is_float() {
        let mut numbers = [0.0; 3];
        for (number, text) in numbers.iter_mut().zip(texts) {
            *number = element.as_float(element.parse(text)?);
        }
        let [start, end, step] = numbers;
        let count = ((end - start) / step).ceil();
        if !count.is_finite() || count < 0.0 {
            return Err(empty());
        }
        let count = fits(count as usize)?;
        let number = move |index| element.of_float(start + index as f64 * step);
        return Ok(Elements::of(element, (0..count).map(number)));
    }
    let [start, end, step] =
        [whole(element, texts[0])?, whole(element, texts[1])?, whole(element, texts[2])?];
    let distance = end - start;
    if step == 0 || distance != 0 && (distance < 0) != (step < 0) {
        return Err(empty());
    }
    // Rounded up: the last step may reach beyond the end.
    let count = (distance.abs() + step.abs() - 1) / step.abs();
    let count = fits(usize::try_from(count).unwrap_or(usize::MAX))?;
    if count > 0 {
        element.parse(&start.to_string())?;
        element.parse(&(start + (count as i128 - 1) * step).to_string())?;
    }
    let number = move |index| element.of_integer(start + index as i128 * step);
    Ok(Elements::of(element, (0..count).map(number)))
}

/// A whole number. It need not be of the type: a range ends before its end.
fn whole(element: Element, text: &str) -> Result<i128, Problem> {
    let wrong = || ValueError { text: text.to_owned(), ty: element };
    Ok(integer(text).ok_or_else(wrong)?)
}

/// What gives pseudo-random numbers one after the other, the same in every run (Blackman and Vigna's xoshiro256++).
fn generator(
    element: Element,
    seed: u64,
    bounds: Option<&(String, String)>,
) -> Result<Box<dyn FnMut() -> u64>, Problem> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let empty =
        |(low, high): &(String, String)| Problem::EmptyRange { text: format!("{low}..{high}") };
    if element.is_float() {
        let (low, high) = match bounds {
            None => (0.0, 1.0),
            Some(bounds) => {
                let number = |text| Ok::<_, Problem>(element.as_float(element.parse(text)?));
                let (low, high) = (number(&bounds.0)?, number(&bounds.1)?);
                if !(low < high && (high - low).is_finite()) {
                    return Err(empty(bounds));
                }
                (low, high)
            }
        };
        // As many as the type has, so that rounded numbers are below the upper bound, too.
        let bits = if element == Element::F16 { 11 } else { 24 };
        return Ok(Box::new(move || {
            let part = (random.next_u64() >> (64 - bits)) as f64 / f64::from(1 << bits);
            element.of_float(low + part * (high - low))
        }));
    }
    let Some(bounds) = bounds else {
        return Ok(Box::new(move || element.of_integer(random.next_u64().into())));
    };
    let (low, high) = (whole(element, &bounds.0)?, whole(element, &bounds.1)?);
    if low >= high {
        return Err(empty(bounds));
    }
    element.parse(&low.to_string())?;
    element.parse(&(high - 1).to_string())?;
    let width = (high - low).cast_unsigned();
    Ok(Box::new(move || {
        // A type has less than 2^65 numbers, those of both signs counted.
        let part = (u128::from(random.next_u64() >> 1) * width) >> 63;
        element.of_integer(low + part.cast_signed())
    }))
}

#[cfg(test)]
mod tests {
    use super::super::spec::{Spec, argument};
    use super::*;

    fn texts(text: &str) -> Result<Vec<String>, Problem> {
        let Spec::Buffer { element, contents } = argument(text).unwrap().spec else {
            panic!("{text}")
        };
        let element = element.unwrap();
        let elements = Elements::new(element, &contents, 1 << 20)?;
        let bytes = elements.bytes.unwrap();
        assert_eq!(bytes.len(), elements.len * element.bytes());
        Ok(bytes.chunks(element.bytes()).map(|bytes| element.text(element.load(bytes))).collect())
    }

    #[test]
    fn ranges_end_before_their_end() {
        assert_eq!(texts("i32:-1..3").unwrap(), ["-1", "0", "1", "2"]);
        assert_eq!(texts("u8:0..10..4").unwrap(), ["0", "4", "8"]);
        assert_eq!(texts("i16:3..0..-1").unwrap(), ["3", "2", "1"]);
        assert_eq!(texts("f32:0..1..0.25").unwrap(), ["0", "0.25", "0.5", "0.75"]);
        assert_eq!(texts("f16:-1..1..0.5").unwrap(), ["-1", "-0.5", "0", "0.5"]);
        assert_eq!(texts("i32:5..5").unwrap(), [""; 0]);
        assert_eq!(texts("u8:254..256").unwrap(), ["254", "255"]);
        for text in [
            "i32:3..0",
            "i32:0..3..0",
            "f32:0..1..0",
            "f32:0..inf",
            "i8:0..300",
            "f32:0..1000000000",
        ] {
            assert!(texts(text).is_err(), "{text}");
        }
    }

    #[test]
    fn random_elements_are_within_bounds_and_the_same_each_time() {
        let floats = texts("f32x100:random:7").unwrap();
        assert_eq!(floats, texts("f32x100:random:7").unwrap());
        assert_ne!(floats, texts("f32x100:random:8").unwrap());
        assert!(floats.iter().all(|float| (0.0..1.0).contains(&float.parse::<f32>().unwrap())));
        let halves = texts("f16x1000:random:7").unwrap();
        assert!(halves.iter().all(|half| (0.0..1.0).contains(&half.parse::<f32>().unwrap())));
        let dice = texts("i8x100:random:1:-3..4").unwrap();
        let mut seen: Vec<i8> = dice.iter().map(|face| face.parse().unwrap()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [-3, -2, -1, 0, 1, 2, 3]);
        assert!(texts("i32x4:random:1:4..4").is_err());
        assert!(texts("f64x4:random:1:1..nan").is_err());
    }
}
