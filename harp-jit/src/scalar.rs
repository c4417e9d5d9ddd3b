//! How the types of scalars in memory are saved: by name, as in CLIF's text.

use cranelift_codegen::ir::{Type, types};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};

/// The types that are known.
const SCALARS: [(&str, Type); 6] = [
    ("i8", types::I8),
    ("i16", types::I16),
    ("i32", types::I32),
    ("i64", types::I64),
    ("f32", types::F32),
    ("f64", types::F64),
];

/// The type of a scalar in memory, which is saved by its name in CLIF. Others cannot be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar(pub Type);

pub(crate) fn serialize<S: Serializer>(ty: &Type, serializer: S) -> Result<S::Ok, S::Error> {
    match SCALARS.iter().find(|(_, known)| known == ty) {
        Some((name, _)) => serializer.serialize_str(name),
        None => Err(S::Error::custom(format_args!("{ty} is no scalar in memory"))),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Type, D::Error> {
    let given = String::deserialize(deserializer)?;
    match SCALARS.iter().find(|(name, _)| *name == given) {
        Some(&(_, ty)) => Ok(ty),
        None => Err(D::Error::custom(format_args!("`{given}` is no scalar in memory"))),
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        deserialize(deserializer).map(Scalar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_saved_by_their_names_in_clif() {
        for (name, ty) in SCALARS {
            assert_eq!(ty.to_string(), name);
            let text = serde_json::to_string(&Scalar(ty)).unwrap();
            assert_eq!(serde_json::from_str::<Scalar>(&text).unwrap(), Scalar(ty));
        }
        assert!(serde_json::to_string(&Scalar(types::I128)).is_err());
        assert!(serde_json::from_str::<Scalar>("\"i32x4\"").is_err());
    }
}
