//! Architecture ids are saved as text.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use super::ArchId;

impl Serialize for ArchId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ArchId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ArchId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_saved_as_text() {
        let arch: ArchId = "harp64+x".parse().unwrap();
        let text = serde_json::to_string(&arch).unwrap();
        assert_eq!(text, "\"8w32/32/16/16+x\"");
        assert_eq!(serde_json::from_str::<ArchId>(&text).unwrap(), arch);
        let error = serde_json::from_str::<ArchId>("\"4w8/8/65\"").unwrap_err();
        assert!(error.to_string().starts_with("65 lanes"), "{error}");
    }
}
