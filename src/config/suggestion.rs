//! "Did you mean …?"

/// The candidate that is most likely meant by `word`, if any is near.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let tolerance = (word.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= tolerance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// "`a`", "`a` and `b`", "`a`, `b` and `c`".
pub(crate) fn enumerate<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_is_near_and_nothing_else() {
        let nodes = ["alpha", "bravo", "charlie"];
        assert_eq!(nearest("charly", nodes), Some("charlie"));
        assert_eq!(nearest("Bravo", nodes), Some("bravo"));
        assert_eq!(nearest("zulu", nodes), None);
        assert_eq!(nearest("anounce", ["announce", "addresses"]), Some("announce"));
    }

    #[test]
    fn enumerates_as_people_write() {
        assert_eq!(enumerate([]), "");
        assert_eq!(enumerate(["a"]), "`a`");
        assert_eq!(enumerate(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
