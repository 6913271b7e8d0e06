//! When to ask whom for an introduction.

use crate::forwarding::LinkId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Pause after the first request; time for both ends to try.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// Longest pause between requests: routers may let through tomorrow what they refuse today.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Requests for one link.
#[derive(Debug, Clone, Copy)]
struct Search {
    next: Instant,
    wait: Duration,
    asked: usize,
}

/// The links that wait for an introduction.
#[derive(Debug, Default)]
pub(crate) struct Seeker {
    searches: BTreeMap<LinkId, Search>,
}

impl Seeker {
    /// Ask for this link at once, whatever was tried before: it went down, or somebody new can be asked.
    pub(crate) fn seek(&mut self, link: LinkId, now: Instant) {
        self.searches.insert(link, Search { next: now, wait: FIRST_WAIT, asked: 0 });
    }

    /// The link is up, or gone.
    pub(crate) fn found(&mut self, link: LinkId) {
        self.searches.remove(&link);
    }

    /// When the next request is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.searches.values().map(|search| search.next).min()
    }

    /// The links for which a request is due, each with a number that names whom to ask in turn. `helpers` says how
    /// many there are to ask: after each round the pause doubles.
    pub(crate) fn due(&mut self, now: Instant, helpers: impl Fn(LinkId) -> usize) -> Vec<(LinkId, usize)> {
        let mut due = Vec::new();
        for (link, search) in self.searches.iter_mut().filter(|(_, search)| search.next <= now) {
            let helpers = helpers(*link);
            if helpers > 0 {
                due.push((*link, search.asked % helpers));
                search.asked = search.asked.wrapping_add(1);
            }
            search.next = now + search.wait;
            if helpers == 0 || search.asked % helpers == 0 {
                search.wait = (search.wait * 2).min(LONGEST_WAIT);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_asked_in_turn_and_ever_more_rarely() {
        let start = Instant::now();
        let mut seeker = Seeker::default();
        seeker.seek(LinkId(7), start);
        let (mut now, mut asked) = (start, Vec::new());
        for _ in 0..6 {
            now = seeker.next_deadline().expect("it never gives up");
            asked.extend(seeker.due(now, |_| 2).into_iter().map(|(_, helper)| helper));
        }
        assert_eq!(asked, [0, 1, 0, 1, 0, 1]);
        assert_eq!(now - start, Duration::from_secs(2 + 2 + 4 + 4 + 8));
        for _ in 0..40 {
            let next = seeker.next_deadline().expect("it never gives up");
            assert!(next - now <= LONGEST_WAIT);
            now = next;
            seeker.due(now, |_| 2);
        }
        seeker.seek(LinkId(7), now);
        assert_eq!(seeker.next_deadline(), Some(now), "news are tried at once");
        seeker.found(LinkId(7));
        assert_eq!(seeker.next_deadline(), None);
    }

    #[test]
    fn nobody_to_ask_is_no_busy_loop() {
        let start = Instant::now();
        let mut seeker = Seeker::default();
        seeker.seek(LinkId(1), start);
        assert!(seeker.due(start, |_| 0).is_empty());
        assert!(seeker.next_deadline() >= Some(start + FIRST_WAIT));
    }
}
