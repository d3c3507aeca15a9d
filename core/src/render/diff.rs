//! The lines of two texts as one diff, with all context, so that both texts can be read back.

use alloc::vec::Vec;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::document::Kind;

/// Lines of both texts together up to which they are compared. Comparing is quadratic at worst;
/// beyond, the old text is shown as removed and the new one as added, which is complete as well.
const COMPARED: usize = 20_000;

/// The diff from `old` to `new`. Joined with line feeds, the lines that are not added are `old` and
/// the lines that are not removed are `new`: a final line feed is an empty last line.
pub(super) fn lines<'t>(old: &'t str, new: &'t str) -> Vec<(Kind, &'t str)> {
    let a: Vec<&str> = old.split('\n').collect();
    let b: Vec<&str> = new.split('\n').collect();
    let mut out = Vec::with_capacity(a.len() + b.len());
    if a.len() + b.len() > COMPARED {
        out.extend(a.into_iter().map(|line| (Kind::Removed, line)));
        out.extend(b.into_iter().map(|line| (Kind::Added, line)));
        return out;
    }
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
        let (kept, removed, added) = match op {
            DiffOp::Equal { old_index, len, .. } => (old_index..old_index + len, 0..0, 0..0),
            DiffOp::Delete { old_index, old_len, .. } => {
                (0..0, old_index..old_index + old_len, 0..0)
            }
            DiffOp::Insert { new_index, new_len, .. } => {
                (0..0, 0..0, new_index..new_index + new_len)
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                (0..0, old_index..old_index + old_len, new_index..new_index + new_len)
            }
        };
        out.extend(a[kept].iter().map(|line| (Kind::Same, *line)));
        out.extend(a[removed].iter().map(|line| (Kind::Removed, *line)));
        out.extend(b[added].iter().map(|line| (Kind::Added, *line)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Added, Removed, Same};
    use alloc::string::String;

    #[test]
    fn a_changed_line_stands_between_its_context() {
        let found = lines("a\nb\nc\n", "a\nB\nc\n");
        assert_eq!(found, [(Same, "a"), (Removed, "b"), (Added, "B"), (Same, "c"), (Same, "")]);
    }

    #[test]
    fn a_missing_line_feed_at_the_end_is_a_difference() {
        assert_eq!(lines("a\n", "a"), [(Same, "a"), (Removed, "")]);
        assert_eq!(lines("", "a"), [(Removed, ""), (Added, "a")]);
    }

    #[test]
    fn texts_at_the_limit_are_compared_and_longer_ones_shown_whole() {
        let half = "x\n".repeat(COMPARED / 2 - 1);
        assert!(lines(&half, &half).iter().all(|(kind, _)| *kind == Same));
        let more: String = half.clone() + "\n";
        assert!(lines(&half, &more).iter().all(|(kind, _)| *kind != Same));
    }
}
