//! Histograms of small numbers.

/// How often each of the numbers 0, 1, 2, ... occurred.
///
/// In JSON an object: `total` and `sum` as the methods here, and `counts`, a list by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram(Vec<u64>);

impl Histogram {
    /// Counts `number` once more.
    pub(super) fn add(&mut self, number: usize) {
        if self.0.len() <= number {
            self.0.resize(number + 1, 0);
        }
        self.0[number] += 1;
    }

    /// Counts the number of lanes in `mask`.
    pub(super) fn add_lanes(&mut self, mask: u64) {
        self.add(mask.count_ones() as usize);
    }

    pub(super) fn merge(&mut self, other: &Histogram) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(count, more)| *count += more);
    }

    /// How often each number occurred, from 0 to the highest that did.
    pub fn counts(&self) -> &[u64] {
        &self.0
    }

    /// How often `number` occurred.
    pub fn count(&self, number: usize) -> u64 {
        self.0.get(number).copied().unwrap_or(0)
    }

    /// How many numbers were counted.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The sum of the numbers that were counted.
    pub fn sum(&self) -> u64 {
        self.0.iter().zip(0..).map(|(count, number)| count * number).sum()
    }

    /// The mean of the numbers that were counted.
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        (total != 0).then(|| self.sum() as f64 / total as f64)
    }
}
