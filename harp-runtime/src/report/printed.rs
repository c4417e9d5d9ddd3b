//! What a kernel has printed.

use std::fmt;

use harp_jit::{PrintRecord, SourcePlace};

/// The lines that a kernel has [printed](harp_jit::KernelBuilder::print) in a launch. As text it is the lines,
/// each with the position of its work-item:
///
/// ```
/// use harp_runtime::prelude::*;
///
/// let arch: ArchId = "harp32".parse()?;
/// let mut source = KernelSource::new("squares", arch);
/// let mut b = KernelBuilder::new(&mut source);
/// let i = b.global_id(0);
/// let square = b.ins().imul(i, i);
/// b.print("{} squared is {}", &[i, square]);
/// b.return_();
/// b.finalize()?;
/// let kernel = source.compile(&CompileOptions::default())?;
///
/// let device = Device::new(DeviceConfig::new(arch))?;
/// let report = device.launch(&kernel, LaunchConfig::grid_1d(3), &[])?;
/// assert_eq!(
///     report.printed.to_string(),
///     "[0] 0 squared is 0\n[1] 1 squared is 1\n[2] 2 squared is 4\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Printed {
    /// The lines in the order of the work-items, along the first dimension first; those of a work-item in the
    /// order in which it printed them.
    pub lines: Vec<PrintedLine>,
    /// How many lines did not fit the memory for them: see
    /// [`LaunchConfig::print_bytes`](crate::LaunchConfig::print_bytes).
    pub dropped: u64,
}

/// A line that a work-item has printed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrintedLine {
    /// The position of the work-item in the grid.
    pub work_item: [u64; 3],
    /// The line.
    pub text: String,
    /// The builder call that printed it.
    pub place: SourcePlace,
    /// How many dimensions of the position are shown.
    dimensions: usize,
}

impl Printed {
    /// What was printed over a grid, in which positions have so many dimensions.
    pub(crate) fn new(
        grid: [u64; 3],
        dimensions: usize,
        records: Vec<PrintRecord>,
        dropped: u64,
    ) -> Printed {
        let [columns, rows, _] = grid.map(|extent| extent.max(1));
        let lines = records.into_iter().map(|PrintRecord { work_item, text, place, .. }| {
            let (row, column) = (work_item / columns, work_item % columns);
            let work_item = [column, row % rows, row / rows];
            PrintedLine { work_item, text, place, dimensions }
        });
        Printed { lines: lines.collect(), dropped }
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        match self.dropped {
            0 => Ok(()),
            dropped => writeln!(f, "lines that did not fit: {dropped}"),
        }
    }
}

impl fmt::Display for PrintedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = self.work_item[..self.dimensions].iter().map(u64::to_string);
        write!(f, "[{}] {}", position.collect::<Vec<_>>().join(", "), self.text)
    }
}
