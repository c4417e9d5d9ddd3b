//! Words of memory that host and assembly text share.

/// Declares words that lie one behind the other, in this order, each with its name in assembly text. Further names, behind
/// `also`, stand for some of them where these mean something else.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[$doc:meta])* $word:ident = $text:literal,)*
        }
        $(also {
            $($(#[$other_doc:meta])* $other:ident = $of:ident = $other_text:literal,)*
        })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $($(#[$doc])* $word,)*
        }

        impl $name {
            $($($(#[$other_doc])* $vis const $other: $name = $name::$of;)*)?

            /// How many words there are.
            $vis const COUNT: usize = [$($text),*].len();

            /// The distance from the first word, in bytes.
            $vis fn offset(self, word: harp_isa::WordSize) -> u64 {
                self as u64 * u64::from(word.bytes())
            }

            /// The same of all words, for assembly text.
            pub(crate) fn definitions(
                word: harp_isa::WordSize,
            ) -> impl Iterator<Item = (&'static str, i64)> {
                [$(($text, $name::$word),)* $($(($other_text, $name::$other),)*)?]
                    .into_iter()
                    .map(move |(text, place)| (text, place.offset(word).cast_signed()))
            }
        }
    };
}
pub(crate) use words;
