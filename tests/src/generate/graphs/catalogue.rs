//! Named shapes with where they come from.
//!
//! Those of tests have the edges of the functions there, without what is the same as another one. Those of papers and
//! books, of languages and machines are drawn after the constructs that these discuss.

use std::sync::LazyLock;

use super::shape::Shape;

/// A shape of the catalogue.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name, which no other has.
    pub name: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The graph.
    pub shape: Shape,
}

/// Lines `# source`, each followed by lines `name = edges` in the form of [`Shape::parse`].
const TEXTS: [&str; 3] = [
    include_str!("catalogue/uniformity.txt"),
    include_str!("catalogue/structurize.txt"),
    include_str!("catalogue/papers.txt"),
];

static CATALOGUE: LazyLock<Vec<Named>> = LazyLock::new(|| {
    let shapes = TEXTS.iter().try_fold(Vec::new(), |mut shapes, text| {
        shapes.extend(read(text)?);
        Ok::<_, String>(shapes)
    });
    shapes.expect("every line of the catalogue has its form, as a test says")
});

/// All shapes.
pub fn catalogue() -> &'static [Named] {
    &CATALOGUE
}

fn read(text: &'static str) -> Result<Vec<Named>, String> {
    let mut source = "";
    let mut shapes = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# ") {
            source = name;
            continue;
        }
        let parts = line.split_once(" = ");
        let shape = parts.and_then(|(name, edges)| Some((name, Shape::parse(edges)?)));
        let (name, shape) = shape.ok_or_else(|| format!("`{line}` describes no shape"))?;
        shapes.push(Named { name, source, shape });
    }
    Ok(shapes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_line_is_a_shape_and_few_are_there_twice() {
        for text in TEXTS {
            assert_eq!(read(text).err(), None);
        }
        let names: BTreeSet<&str> = catalogue().iter().map(|named| named.name).collect();
        assert_eq!(names.len(), catalogue().len(), "two shapes have the same name");
        assert!(names.len() >= 100, "{} shapes", names.len());
        assert!(catalogue().iter().all(|named| !named.source.is_empty()));
        // A few are published in several places, under names of their own.
        let differs = |at: usize| {
            let earlier = &catalogue()[..at];
            earlier.iter().all(|other| other.shape != catalogue()[at].shape)
        };
        let different = (0..catalogue().len()).filter(|&at| differs(at)).count();
        assert!(different * 20 > catalogue().len() * 19, "{different} different shapes");
    }
}
