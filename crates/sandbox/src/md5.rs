//! MD5, for the older fingerprint of keys. Nothing rests on it.

/// How far each step of a round rotates, four steps at a time.
const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The digest of a text (RFC 1321).
pub(crate) fn digest(bytes: &[u8]) -> [u8; 16] {
    let mut message = bytes.to_vec();
    message.push(0x80);
    message.resize(message.len().next_multiple_of(64), 0);
    if message.len() - bytes.len() < 9 {
        message.resize(message.len() + 64, 0);
    }
    let length = (bytes.len() as u64).wrapping_mul(8).to_le_bytes();
    let end = message.len() - length.len();
    message[end..].copy_from_slice(&length);
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in message.chunks_exact(64) {
        let word = |at: usize| {
            block[at * 4..at * 4 + 4].iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
        };
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mixed, at) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), (7 * step) % 16),
            };
            // The constants of the steps are the sines of their numbers.
            let constant = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mixed).wrapping_add(constant).wrapping_add(word(at));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(TURNS[step / 16][step % 4]));
        }
        for (part, more) in state.iter_mut().zip([a, b, c, d]) {
            *part = part.wrapping_add(more);
        }
    }
    let mut digest = [0; 16];
    for (place, part) in digest.chunks_exact_mut(4).zip(state) {
        place.copy_from_slice(&part.to_le_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        for (text, expected) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (&"1234567890".repeat(8), "57edf4a22be3c955ac49da2e2107b67a"),
        ] {
            let digest: String =
                digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(digest, expected, "{text}");
        }
    }
}
