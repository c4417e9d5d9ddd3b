//! Tables as aligned text, as JSON lines and as CSV.

use serde::Serialize;
use serde_json::json;

use super::super::error::CliError;
use harp_bench::{Figure, Row};

/// Columns as wide as their widest cell; the first `left` of them are aligned to the left.
pub(super) fn aligned(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// The runs.
pub(super) fn text(rows: &[Row]) -> String {
    let head = [
        "program",
        "input",
        "strategy",
        "trained on",
        "warp instructions",
        "lane instructions",
        "branches",
        "divergent",
        "result",
    ];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    cells.extend(rows.iter().map(|row| {
        vec![
            row.program.to_owned(),
            row.input.to_owned(),
            row.strategy.name().to_owned(),
            row.trained_on.unwrap_or("-").to_owned(),
            row.warp_instructions.to_string(),
            row.lane_instructions.to_string(),
            row.branches.to_string(),
            row.divergent_executions.to_string(),
            if row.correct { "correct" } else { "WRONG" }.to_owned(),
        ]
    }));
    aligned(&cells, 4)
}

/// The runs, one object per line.
pub(super) fn json(rows: &[Row]) -> String {
    rows.iter().map(line).collect()
}

/// An object as a line of JSON.
pub(super) fn line(object: &impl Serialize) -> String {
    serde_json::to_string(object).expect("numbers and names are JSON") + "\n"
}

/// The runs as CSV, with a header.
pub(super) fn csv(rows: &[Row]) -> Result<String, CliError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).map_err(|source| CliError::Csv { source })?;
    }
    finished(writer)
}

fn finished(writer: csv::Writer<Vec<u8>>) -> Result<String, CliError> {
    let bytes = writer.into_inner().map_err(|error| CliError::stdout(error.into_error()))?;
    Ok(String::from_utf8(bytes).expect("all fields are text"))
}

/// A figure under its title.
pub(super) fn figure_text(figure: &Figure) -> String {
    let mut cells = vec![vec![String::new()]];
    cells[0].extend(figure.series.iter().cloned());
    for (name, bars) in &figure.groups {
        let number = |bar: &Option<f64>| bar.map_or("-".to_owned(), |bar| format!("{bar:.3}"));
        let mut row = vec![name.clone()];
        row.extend(bars.iter().map(number));
        cells.push(row);
    }
    format!("{}: {}\n{}", figure.kind.name(), figure.kind.title(), aligned(&cells, 1))
}

/// A figure's bars, one object per line.
pub(super) fn figure_json(figure: &Figure) -> String {
    bars(figure)
        .map(|(group, series, value)| {
            let figure = figure.kind.name();
            line(&json!({ "figure": figure, "group": group, "series": series, "value": value }))
        })
        .collect()
}

/// The bars of all figures as CSV.
pub(super) fn figures_csv(figures: &[Figure]) -> Result<String, CliError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |source| CliError::Csv { source };
    writer.write_record(["figure", "group", "series", "value"]).map_err(failed)?;
    for figure in figures {
        for (group, series, value) in bars(figure) {
            let value = value.to_string();
            writer.write_record([figure.kind.name(), group, series, &value]).map_err(failed)?;
        }
    }
    finished(writer)
}

fn bars(figure: &Figure) -> impl Iterator<Item = (&str, &str, f64)> {
    figure.groups.iter().flat_map(|(group, bars)| {
        let named = figure.series.iter().zip(bars);
        named.filter_map(|(series, bar)| Some((group.as_str(), series.as_str(), (*bar)?)))
    })
}
