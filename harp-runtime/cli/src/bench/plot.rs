//! Figures as plots: groups of bars.

use plotters::prelude::*;

use super::super::error::CliError;
use harp_bench::Figure;

/// The width of a bar in pixels.
const BAR: u32 = 8;
/// The width of the gap between groups, in bars.
const GAP: u32 = 2;

/// The plot as SVG.
pub(super) fn svg(figure: &Figure) -> Result<String, CliError> {
    let mut text = String::new();
    draw(figure, &mut text).map_err(|error| {
        let message = error.to_string();
        CliError::Plot { figure: figure.kind.name(), message }
    })?;
    Ok(text)
}

fn draw(figure: &Figure, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let series = figure.series.len() as u32;
    let pitch = series + GAP;
    let slots = pitch * figure.groups.len() as u32;
    let size = ((BAR * slots).max(400) + 120, 480);
    let root = SVGBackend::with_string(text, size).into_drawing_area();
    root.fill(&WHITE)?;
    let bars = || figure.groups.iter().flat_map(|(_, bars)| bars.iter().flatten());
    let top = bars().fold(1.0_f64, |top, &bar| top.max(bar)) * 1.1;
    let mut chart = ChartBuilder::on(&root)
        .caption(figure.kind.title(), ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(110)
        .y_label_area_size(50)
        .build_cartesian_2d(0..slots.max(1), 0.0..top)?;
    let name = |&slot: &u32| {
        let group = figure.groups.get((slot / pitch) as usize);
        group.map(|(name, _)| name.clone()).unwrap_or_default()
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(figure.groups.len())
        .x_label_style(("sans-serif", 11).into_font().transform(FontTransform::Rotate90))
        .x_label_formatter(&name)
        .draw()?;
    for (at, name) in (0_u32..).zip(&figure.series) {
        let colour = Palette99::pick(at as usize).to_rgba();
        let groups = (0_u32..).zip(&figure.groups);
        let rectangles = groups.filter_map(|(group, (_, bars))| {
            let left = group * pitch + at;
            let bar = bars[at as usize]?;
            Some(Rectangle::new([(left, 0.0), (left + 1, bar)], colour.filled()))
        });
        chart
            .draw_series(rectangles)?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 8, y + 4)], colour.filled()));
    }
    if figure.series.len() > 1 {
        let style = WHITE.mix(0.8);
        chart.configure_series_labels().background_style(style).border_style(BLACK).draw()?;
    }
    root.present()?;
    Ok(())
}
