//! `harp asm`: assembly text to an object file.

use clap::Args;
use harp_isa::asm::{Colors, assemble};
use harp_isa::object::hof;

use super::Target;
use super::error::CliError;
use super::files::{Input, Output};
use super::numbers::definition;

/// Assemble a text into an object file
#[derive(Args)]
#[command(after_help = "Examples:
  harp asm -a harp32 hello.s
  harp asm -a 4w16/16/8/8 -D N=100 -o build/hello.hof hello.s")]
pub(super) struct Asm {
    /// The assembly text; `-` is standard input
    #[arg(value_name = "FILE.s")]
    source: Input,
    #[command(flatten)]
    target: Target,
    /// The object file; `-` is standard output [default: FILE.hof]
    #[arg(short, long, value_name = "FILE")]
    output: Option<Output>,
    /// Define a constant as if by `.def NAME VALUE` before the text
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = definition)]
    definitions: Vec<(String, i64)>,
}

impl Asm {
    pub(super) fn run(self) -> Result<(), CliError> {
        let Asm { source, target, output, definitions } = self;
        let output = output.unwrap_or_else(|| Output::beside(&source, "hof"));
        output.spares([&source])?;
        let text = source.read_text()?;
        let definitions: Vec<(&str, i64)> =
            definitions.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let object = assemble(&text, target.arch, &definitions).map_err(|errors| {
            let name = source.name();
            CliError::Asm { rendered: errors.render(&text, &name, Colors::Ansi) }
        })?;
        let file = hof::write(&object).map_err(|source| CliError::WriteObject { source })?;
        output.write(&file)
    }
}
