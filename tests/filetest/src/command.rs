//! Run commands: the lines `; run: %f(1) == 2` and `; print: %f(1)` of a file.

use harp_jit::SourcePlace;
use harp_jit::text::{
    Comparison, DataValue, DisplayDataValues, RunCommand, TextFile, TextLine, parse_run_command,
};

/// A line that calls a function.
#[derive(Debug)]
pub(super) struct Line {
    /// The place of the line.
    pub(super) place: SourcePlace,
    /// The line from `run` or `print` on.
    pub(super) text: String,
    /// The index of the function that it calls.
    pub(super) function: usize,
    /// The command, or why the line is not a valid one.
    pub(super) command: Result<Command, String>,
}

/// The command of a line.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) args: Vec<DataValue>,
    pub(super) expected: Expected,
}

/// The expected results of a call.
#[derive(Debug)]
pub(super) enum Expected {
    /// These values.
    Equal(Vec<DataValue>),
    /// Other values than these.
    NotEqual(Vec<DataValue>),
    /// No result that is the integer 0: `; run` alone.
    NotZero,
    /// Anything; the results are shown.
    Anything,
}

impl Expected {
    /// Whether the results are as expected, compared bit by bit.
    pub(super) fn holds(&self, results: &[DataValue]) -> bool {
        let equal = |values: &[DataValue]| {
            values.len() == results.len()
                && values.iter().zip(results).all(|(a, b)| a.bitwise_eq(b))
        };
        match self {
            Expected::Equal(values) => equal(values),
            Expected::NotEqual(values) => !equal(values),
            Expected::NotZero => results.iter().all(|value| !value.is_zero_integer()),
            Expected::Anything => true,
        }
    }
}

/// Whether a value is the integer 0.
trait ZeroInteger {
    fn is_zero_integer(&self) -> bool;
}

impl ZeroInteger for DataValue {
    fn is_zero_integer(&self) -> bool {
        matches!(self, DataValue::I8(0) | DataValue::I16(0) | DataValue::I32(0) | DataValue::I64(0))
    }
}

/// Values as the file tests write them.
pub(super) fn shown(values: &[DataValue]) -> String {
    DisplayDataValues(values).to_string()
}

/// The lines of a file in order.
///
/// As in Cranelift, a line belongs to the function before it. For files with `test interpret`, Cranelift's
/// interpreter calls the function that the line names; for files with only `test run`, its code generators call
/// the function before the line. Both agree if the name is right.
pub(super) fn lines(file: &TextFile) -> Vec<Line> {
    let says = |command: &str| {
        file.header().iter().any(|line| line.text.split_whitespace().eq(["test", command]))
    };
    let by_name = says("interpret") || !says("run");
    let functions = file.functions().iter().enumerate();
    let comments =
        functions.flat_map(|(index, function)| function.comments.iter().map(move |c| (index, c)));
    comments.filter_map(|(index, comment)| line(file, index, comment, by_name)).collect()
}

/// The line in a comment; `None` if it is an ordinary comment.
fn line(file: &TextFile, before: usize, comment: &TextLine, by_name: bool) -> Option<Line> {
    let text = comment.text.trim_start_matches([';', ' ']).trim_end();
    let rest = text.strip_prefix("run").or_else(|| text.strip_prefix("print"))?.trim_start();
    if !rest.is_empty() && !rest.starts_with(':') {
        return None;
    }
    let named = rest.split(['%', '(']).nth(1).filter(|_| by_name);
    let named = named.and_then(|name| file.functions().iter().position(|f| f.name == name));
    let function = named.unwrap_or(before);
    Some(Line {
        place: comment.place.clone(),
        text: text.to_owned(),
        function,
        command: command(file, function, text),
    })
}

fn command(file: &TextFile, function: usize, text: &str) -> Result<Command, String> {
    let signature = &file.functions()[function].func.signature;
    match parse_run_command(text, signature) {
        Ok(Some(RunCommand::Print(call))) => {
            Ok(Command { args: call.args, expected: Expected::Anything })
        }
        Ok(Some(RunCommand::Run(call, comparison, values))) => {
            // The reader turns `; run` alone into a comparison with an `i8`, whatever the type.
            let expected = match comparison {
                _ if text == "run" => Expected::NotZero,
                Comparison::Equals => Expected::Equal(values),
                Comparison::NotEquals => Expected::NotEqual(values),
            };
            Ok(Command { args: call.args, expected })
        }
        Ok(None) => Err("no run command".to_owned()),
        Err(error) => Err(error.message),
    }
}
