//! Few combinations of several choices in which each pair of choices occurs.

use std::collections::BTreeSet;

/// A pair of choices: (dimension, choice) twice.
type Pair = ((usize, usize), (usize, usize));

/// All combinations: each is one index per dimension, below its size.
pub(crate) fn all(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![Vec::new()], |combinations, size| {
        let extend = |combination: Vec<usize>| {
            (0..*size).map(move |choice| [combination.as_slice(), &[choice]].concat())
        };
        combinations.into_iter().flat_map(extend).collect()
    })
}

/// Of the `allowed` combinations as few as come out of taking the most useful next one again and again, until every
/// pair of choices that occurs in them has been covered.
pub(crate) fn sample(allowed: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut missing: BTreeSet<Pair> = allowed.iter().flat_map(|combination| pairs(combination)).collect();
    let mut chosen = Vec::new();
    while !missing.is_empty() {
        let gain = |combination: &&Vec<usize>| {
            pairs(combination).iter().filter(|pair| missing.contains(pair)).count()
        };
        // The first of the best, so that the sample is the same each time.
        let Some(best) = allowed.iter().rev().max_by_key(gain) else { break };
        pairs(best).iter().for_each(|pair| {
            missing.remove(pair);
        });
        chosen.push(best.clone());
    }
    chosen
}

fn pairs(combination: &[usize]) -> Vec<Pair> {
    let places: Vec<(usize, usize)> = combination.iter().copied().enumerate().collect();
    let behind = |index: usize| places.get(index + 1..).unwrap_or_default();
    places
        .iter()
        .enumerate()
        .flat_map(|(index, one)| behind(index).iter().map(|other| (*one, *other)))
        .collect()
}
