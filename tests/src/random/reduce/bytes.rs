//! Fewer bytes, in the manner of delta debugging (Zeller and Hildebrandt 2002): shorter, parts left out,
//! parts zero.

/// Bytes that `keeps` still says yes to. It is asked `left` times at most, which is counted down.
pub(in super::super) fn fewer_bytes(
    bytes: &[u8],
    left: &mut usize,
    mut keeps: impl FnMut(&[u8]) -> bool,
) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut part = bytes.len() / 2;
    while part > 0 && *left > 0 {
        let mut start = 0;
        let mut changed = false;
        while start < bytes.len() && *left > 0 {
            let end = bytes.len().min(start + part);
            let truncated = bytes[..start].to_vec();
            let removed = [&bytes[..start], &bytes[end..]].concat();
            let mut zeroed = bytes.clone();
            zeroed[start..end].fill(0);
            let mut found = false;
            for candidate in [truncated, removed, zeroed] {
                if candidate == bytes || *left == 0 {
                    continue;
                }
                *left -= 1;
                if keeps(&candidate) {
                    (bytes, found, changed) = (candidate, true, true);
                    break;
                }
            }
            if !found || bytes.get(start..end).is_some_and(|part| part.iter().all(|&b| b == 0)) {
                start += part;
            }
        }
        if !changed || part > 1 {
            part /= 2;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_stays() {
        let bytes: Vec<u8> = (1..=100).collect();
        let mut left = 1000;
        let both = |bytes: &[u8]| bytes.contains(&20) && bytes.contains(&77);
        assert_eq!(fewer_bytes(&bytes, &mut left, both), [20, 77]);
        assert!(left > 0);
        assert_eq!(fewer_bytes(&bytes, &mut 0, both), bytes);
    }
}
