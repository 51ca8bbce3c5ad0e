//! SHA-256 as every format here writes it: 64 lowercase hexadecimal digits.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The digest of bytes that come piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Digest(Sha256);

impl Digest {
    /// Takes in more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all that was taken in.
    pub fn finish(self) -> String {
        self.0.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// The digest of these bytes.
pub fn sha256(bytes: &[u8]) -> String {
    let mut digest = Digest::default();
    digest.update(bytes);
    digest.finish()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_digest_of_nothing() {
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(super::sha256(b""), expected);
    }
}
