//! `harp disasm`: object files and flat images to text.

use clap::Args;
use harp_isa::object::hof;
use harp_isa::{ArchId, listing};

use super::error::CliError;
use super::files::{Input, Output};
use super::numbers::number;

/// The bytes that object files, and only they, start with.
const MAGIC: &[u8] = b"HARP";

/// Show what an object file or a flat image holds
#[derive(Args)]
#[command(
    long_about = "Show what an object file or a flat image holds

A file that starts with `HARP` is an object file. It names its machine, and is shown as assembly
text. Any other file is a flat image. It is shown as code, each instruction with its address and bytes.",
    after_help = "Examples:
  harp disasm main.hof
  harp disasm --exact main.hof | harp asm -a harp32 -o copy.hof -
  harp disasm -a harp32 main.bin | less"
)]
pub(super) struct Disasm {
    /// The object file or flat image; `-` is standard input
    #[arg(value_name = "FILE")]
    input: Input,
    /// Where to write the text; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: Output,
    /// The machine of a flat image
    #[arg(short, long, value_name = "ARCH", env = "HARP_ARCH")]
    arch: Option<ArchId>,
    /// Show everything about an object: the text assembles to the same object file, byte by byte. It is an
    /// error if the file has unused bytes that the text cannot show, such as padding that is not zero
    #[arg(long)]
    exact: bool,
    /// The address of a flat image's first byte
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = number)]
    offset: u64,
}

impl Disasm {
    pub(super) fn run(self) -> Result<(), CliError> {
        self.output.spares([&self.input])?;
        let bytes = self.input.read()?;
        if bytes.starts_with(MAGIC) {
            if !self.exact {
                return self.output.print(self.input.parse_object(&bytes)?.display());
            }
            let object = hof::read_exact(&bytes)
                .map_err(|source| CliError::NotExact { file: self.input, source })?;
            return self.output.print(object.display_exact());
        }
        match self.arch {
            Some(arch) => self.output.print(listing(&bytes, self.offset, arch)),
            None => Err(CliError::FlatNeedsArch { file: self.input }),
        }
    }
}
