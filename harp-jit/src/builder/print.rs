//! Printing.

use std::panic::Location;

use cranelift_codegen::ir::Value;

use super::KernelBuilder;
use crate::error::BuildErrorKind;
use crate::print::PrintSite;
use crate::source::SourcePlace;

impl KernelBuilder<'_> {
    /// Prints a line: `format` with `values` in place of each `{}`. The launch's report has the lines of all
    /// work-items, in the order of their positions, and so has the error of a launch that trapped.
    ///
    /// `{}` shows a signed integer or a float, `{:u}` an unsigned integer, `{:x}` its digits in base 16. `{{`
    /// and `}}` are the characters. At most 64 values can be printed in a line.
    ///
    /// Each lane appends what it prints to a region of memory of its own; lines that do not fit there are
    /// counted, and the report has the number. A line takes about 14 instructions with extension X and up to 28
    /// without, and one for each word of its values; none of them is a branch.
    ///
    /// A format that does not fit the values is an error.
    ///
    /// ```
    /// # use harp_jit::prelude::*;
    /// # let mut source = KernelSource::new("halves", "harp32".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
    /// let x = b.load(data, i);
    /// let odd = b.ins().band_imm_u(x, 1);
    /// b.if_then(odd, |b| b.print("data[{:u}] = {} is odd", &[i, x]));
    /// # b.return_();
    /// # b.finalize()?;
    /// # source.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn print(&mut self, format: &str, values: &[Value]) {
        let place = Location::caller();
        self.enter(place);
        let values: Vec<Value> = values
            .iter()
            .map(|&value| self.checked_scalar(value, "value to print", place))
            .collect();
        let types: Vec<_> =
            values.iter().map(|&value| self.inner.func.dfg.value_type(value)).collect();
        let site = match PrintSite::new(format, &types, SourcePlace::from(place)) {
            Ok(site) => site,
            Err(what) => {
                let format = format.to_owned();
                self.fail(BuildErrorKind::PrintFormat { format, what }, place);
                return;
            }
        };
        let (number, arch) = (self.prints.len(), self.arch);
        let printer = self.printer(place);
        printer.append(&mut self.inner, arch, number, &site, &values);
        self.prints.push(site);
    }
}
