//! Values of types that protobuf lacks: stored as bytes.

use super::Removal;
use powersweep_experiments::Digest;
use prost::Message;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, bytes, skip_field};
use roaring::RoaringBitmap;
use std::fmt::Debug;
use std::ops::Deref;
use uuid::Uuid;

/// A type that is stored as bytes.
pub trait AsBytes: Debug + Default + Send + Sync {
    /// The bytes.
    fn to_bytes(&self) -> Vec<u8>;

    /// The value of bytes; `None` if no value has these bytes.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;

    /// Number of the bytes.
    fn bytes_len(&self) -> usize {
        self.to_bytes().len()
    }
}

/// A value in a record, as a message of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stored<T>(pub T);

/// The number of the one field in the message.
const BYTES: u32 = 1;

impl<T: AsBytes> Message for Stored<T> {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        bytes::encode(BYTES, &self.0.to_bytes(), buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), prost::DecodeError> {
        if tag != BYTES {
            return skip_field(wire_type, tag, buf, context);
        }
        let mut found = Vec::new();
        bytes::merge(wire_type, &mut found, buf, context)?;
        // Invalid bytes give the default, which has other bytes: the check of the stored record then finds the damage.
        self.0 = T::from_bytes(&found).unwrap_or_default();
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        let length = self.0.bytes_len();
        prost::encoding::key_len(BYTES) + prost::length_delimiter_len(length) + length
    }

    fn clear(&mut self) {
        self.0 = T::default();
    }
}

impl<T> From<T> for Stored<T> {
    fn from(value: T) -> Stored<T> {
        Stored(value)
    }
}

impl<T> Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl AsBytes for Uuid {
    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Uuid> {
        Uuid::from_slice(bytes).ok()
    }
}

impl AsBytes for Digest {
    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Digest> {
        bytes.try_into().ok()
    }
}

impl AsBytes for RoaringBitmap {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.serialized_size());
        self.serialize_into(&mut bytes).expect("writing to memory cannot fail");
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<RoaringBitmap> {
        RoaringBitmap::deserialize_from(bytes).ok()
    }

    fn bytes_len(&self) -> usize {
        self.serialized_size()
    }
}

impl Stored<RoaringBitmap> {
    /// The bits as runs, where that is smaller: a full chunk takes 20 bytes instead of 8 KiB.
    pub fn of_bits(mut bits: RoaringBitmap) -> Stored<RoaringBitmap> {
        bits.optimize();
        Stored(bits)
    }
}

impl AsBytes for Removal {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Removal::Forget => vec![0],
            Removal::Erase => vec![1],
            Removal::Rename(name) => [&[2], name.as_bytes()].concat(),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Option<Removal> {
        match bytes.split_first()? {
            (0, []) => Some(Removal::Forget),
            (1, []) => Some(Removal::Erase),
            (2, name) => Some(Removal::Rename(std::str::from_utf8(name).ok()?.to_owned())),
            _ => None,
        }
    }
}
