//! The known names that a mistyped one may have meant.

/// At most three names of `known` that resemble `name`, best first.
///
/// A dotted name also matches by its last part: for `block_size` this suggests
/// `block_based_table_factory.block_size`.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    /// Below this similarity a suggestion misleads more often than it helps.
    const LIKE: f64 = 0.6;
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|candidate| (likeness(name, candidate), candidate))
        .filter(|(score, _)| *score >= LIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored
        .into_iter()
        .take(3)
        .map(|(_, candidate)| candidate.to_owned())
        .collect()
}

fn likeness(name: &str, candidate: &str) -> f64 {
    let whole = strsim::normalized_damerau_levenshtein(name, candidate);
    let leaf = candidate.rsplit('.').next().unwrap_or(candidate);
    let own_leaf = name.rsplit('.').next().unwrap_or(name);
    // A little less than a whole match, so that an undotted name wins over a dotted one.
    whole.max(0.99 * strsim::normalized_damerau_levenshtein(own_leaf, leaf))
}

#[cfg(test)]
mod tests {
    use super::nearest;

    const KNOWN: [&str; 5] = [
        "write_buffer_size",
        "db_write_buffer_size",
        "max_open_files",
        "block_based_table_factory.block_size",
        "block_based_table_factory.metadata_block_size",
    ];

    #[test]
    fn typing_errors_find_their_name() {
        assert_eq!(nearest("write_bufer_size", KNOWN)[0], "write_buffer_size");
        assert_eq!(nearest("max_openfiles", KNOWN)[0], "max_open_files");
    }

    #[test]
    fn a_bare_name_finds_the_dotted_one() {
        let names = nearest("block_size", KNOWN);
        assert_eq!(names[0], "block_based_table_factory.block_size");
    }

    #[test]
    fn nothing_is_suggested_for_what_is_like_nothing() {
        assert!(nearest("zzz", KNOWN).is_empty());
        assert!(nearest("", KNOWN).is_empty());
    }
}
