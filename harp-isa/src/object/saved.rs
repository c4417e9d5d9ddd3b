//! Permissions are saved as their bits.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use super::Permissions;

impl Serialize for Permissions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.bits().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Permissions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Permissions, D::Error> {
        let bits = u8::deserialize(deserializer)?;
        let unknown = || D::Error::custom(format_args!("unknown permissions in {bits:#x}"));
        Permissions::from_bits(bits).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::ArchId;
    use crate::object::{Chunk, Reference};

    #[test]
    fn chunks_are_saved_with_their_references() {
        let chunk = Chunk {
            name: "c".to_owned(),
            alignment: 4,
            permissions: Permissions::READ | Permissions::WRITE,
            global: true,
            address: Some(16),
            data: vec![0, 1, 2, 255],
            references: vec![Reference::from_word("d", 0, ArchId::HARP32)],
        };
        let text = serde_json::to_string(&chunk).unwrap();
        assert_eq!(serde_json::from_str::<Chunk>(&text).unwrap(), chunk);
        assert!(text.contains("\"permissions\":3"), "{text}");
        let unknown = text.replace("\"permissions\":3", "\"permissions\":11");
        let error = serde_json::from_str::<Chunk>(&unknown).unwrap_err();
        assert!(error.to_string().starts_with("unknown permissions in 0xb"), "{error}");
    }
}
