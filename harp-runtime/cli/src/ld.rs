//! `harp ld`: object files to a flat image.

use std::fmt;
use std::io::{self, Write};

use clap::Args;
use harp_isa::{Image, Object, Permissions, link_named};

use super::error::CliError;
use super::files::{Input, Output};
use super::numbers::number;

/// Link object files into a flat image
#[derive(Args)]
#[command(
    long_about = "Link object files into a flat image

Chunks are placed in the order of the files. A run starts at the image's first byte, so the file
with the boot code must come first.",
    after_help = "Examples:
  harp ld boot.hof lib.hof main.hof -o main.bin
  harp ld --offset 0x1000 --map module.hof -o module.bin"
)]
pub(super) struct Ld {
    /// The object files, in the order of the image; `-` is standard input
    #[arg(value_name = "FILE.hof", required = true)]
    objects: Vec<Input>,
    /// The image; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "a.bin")]
    output: Output,
    /// The address of the image's first byte
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = number)]
    offset: u64,
    /// Print where chunks and symbols lie, to standard error if the image goes to standard output
    #[arg(long)]
    map: bool,
}

impl Ld {
    pub(super) fn run(self) -> Result<(), CliError> {
        let Ld { objects: files, output, offset, map } = self;
        output.spares(&files)?;
        let objects =
            files.iter().map(Input::read_object).collect::<Result<Vec<Object>, CliError>>()?;
        let names: Vec<String> = files.iter().map(Input::name).collect();
        let named: Vec<(&str, &Object)> = names.iter().map(String::as_str).zip(&objects).collect();
        let image = link_named(&named, offset)?;
        output.write(&image.bytes)?;
        if map {
            let map = Map { image: &image, files: &names }.to_string();
            let written = match output {
                Output::Stdout => io::stderr().write_all(map.as_bytes()),
                Output::File(_) => io::stdout().write_all(map.as_bytes()),
            };
            written.map_err(CliError::stdout)?;
        }
        Ok(())
    }
}

/// A map of the chunks and symbols, by address.
struct Map<'a> {
    image: &'a Image,
    /// The names of the objects.
    files: &'a [String],
}

impl fmt::Display for Map<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Map { image, files } = *self;
        writeln!(f, "{:>10} {:>10}  chunks", "address", "size")?;
        for section in &image.sections {
            let permissions = letters(section.permissions);
            writeln!(f, "{:#10x} {:#10x}  {permissions}", section.address, section.size)?;
        }
        writeln!(f, "\n{:>10}  symbols", "address")?;
        let mut symbols: Vec<_> = image.symbols.iter().collect();
        // The sort is stable: symbols with the same address stay in the order of names.
        symbols.sort_by_key(|symbol| symbol.address);
        for symbol in symbols {
            let scope = if symbol.global { "global" } else { "local" };
            let file = files.get(symbol.object).map_or("", String::as_str);
            writeln!(f, "{:#10x}  {} ({scope}, {file})", symbol.address, symbol.name)?;
        }
        Ok(())
    }
}

/// Permissions in the letters of `.perm`, with dashes for the missing ones.
fn letters(permissions: Permissions) -> String {
    let all = [(Permissions::READ, 'r'), (Permissions::WRITE, 'w'), (Permissions::EXECUTE, 'x')];
    all.map(|(bit, letter)| if permissions.contains(bit) { letter } else { '-' }).iter().collect()
}
