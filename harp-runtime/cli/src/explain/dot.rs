//! Control-flow graphs in Graphviz's language. Blocks that end in a divergent branch are red, those with a
//! uniform one green; regions are frames, in the colour of their technique.

use std::fmt::Write;

use harp_jit::{BlockReport, DivergenceReport, Technique};

/// The graph of a function.
pub(super) fn graph(report: &DivergenceReport) -> String {
    let mut text = format!("digraph {:?} {{\n", report.function);
    text += "    node [shape=box, style=filled, fillcolor=white, fontname=monospace];\n";
    for region in (0..report.regions.len()).filter(|&at| report.regions[at].parent.is_none()) {
        frame(report, region, 1, &mut text);
    }
    for block in &report.blocks {
        line(&mut text, 1, &node(report, block));
    }
    for block in &report.blocks {
        let name = &block.name;
        match block.successors.as_slice() {
            [when_true, when_false] => {
                line(&mut text, 1, &format!("{name} -> {when_true} [label=true];"));
                line(&mut text, 1, &format!("{name} -> {when_false} [label=false];"));
            }
            others => {
                for other in others {
                    line(&mut text, 1, &format!("{name} -> {other};"));
                }
            }
        }
    }
    text + "}\n"
}

/// A region with those inside of it.
fn frame(report: &DivergenceReport, at: usize, depth: usize, text: &mut String) {
    let region = &report.regions[at];
    let colour = match region.technique {
        Technique::Predicate => "blue",
        Technique::Linear => "orange",
        _ => "red",
    };
    line(text, depth, &format!("subgraph cluster_{at} {{"));
    let label = format!("label=\"region {at}: {}\"; color={colour};", region.technique.name());
    line(text, depth + 1, &label);
    for (inner, _) in report.regions.iter().enumerate().filter(|(_, r)| r.parent == Some(at)) {
        frame(report, inner, depth + 1, text);
    }
    let blocks = std::iter::once(&region.head).chain(&region.blocks);
    let names: Vec<_> = blocks.map(|block| format!("{block};")).collect();
    line(text, depth + 1, &names.join(" "));
    line(text, depth, "}");
}

fn node(report: &DivergenceReport, block: &BlockReport) -> String {
    let name = &block.name;
    let Some(branch) = report.branches.iter().find(|branch| branch.block == *name) else {
        return format!("{name};");
    };
    let colour = if branch.divergent.is_some() { "lightcoral" } else { "palegreen" };
    let mut label = format!("{name}\\n{}", branch.technique.name());
    if let Some(place) = &branch.place {
        label += &format!("\\n{place}").replace('"', "\\\"");
    }
    format!("{name} [fillcolor={colour}, label=\"{label}\"];")
}

fn line(text: &mut String, depth: usize, what: &str) {
    writeln!(text, "{:1$}{what}", "", 4 * depth).expect("a string takes everything");
}
