//! Tables wider than their page: the columns in blocks, so that no number is broken.

/// Columns of each block: the first `keys` in every one, of the others as many as fit into `room`,
/// at least one. `widths` include the space between columns.
pub fn blocks(widths: &[usize], keys: usize, room: usize) -> Vec<Vec<usize>> {
    let keys = keys.min(widths.len().saturating_sub(1));
    let of_keys: usize = widths[..keys].iter().sum();
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut used = usize::MAX;
    for (column, width) in widths.iter().enumerate().skip(keys) {
        if used.saturating_add(*width) > room {
            blocks.push((0..keys).collect());
            used = of_keys;
        }
        used += width;
        if let Some(block) = blocks.last_mut() {
            block.push(column);
        }
    }
    blocks
}

/// Padding and space between two columns.
const GAP: usize = 2;

/// The widest cell of each column, and the gap behind it.
pub fn widths<'a>(rows: impl Iterator<Item = Vec<&'a str>>) -> Vec<usize> {
    rows.fold(Vec::new(), |mut widths, row| {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            let longest = cell.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            *width = (*width).max(longest + GAP);
        }
        widths
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_in_a_block_and_the_keys_in_all() {
        assert_eq!(blocks(&[4, 6, 6, 6], 1, 99), [[0, 1, 2, 3]]);
        assert_eq!(blocks(&[4, 6, 6, 6], 1, 16), [vec![0, 1, 2], vec![0, 3]]);
        // Wider than the page: by itself.
        assert_eq!(blocks(&[4, 60, 6], 1, 16), [vec![0, 1], vec![0, 2]]);
        assert_eq!(blocks(&[4], 1, 2), [[0]]);
        assert!(blocks(&[], 1, 2).is_empty());
    }

    #[test]
    fn the_widest_cell_counts() {
        assert_eq!(widths([vec!["a", "bcd"], vec!["µµ", "b"]].into_iter()), [4, 5]);
    }
}
