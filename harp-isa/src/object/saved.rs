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
