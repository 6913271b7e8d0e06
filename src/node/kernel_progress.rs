//! Which routes the kernel has by now: it follows a moment later than the node decides.

use ipnet::IpNet;
use std::collections::{BTreeSet, VecDeque};

/// What was asked of the kernel, and how far it has come.
#[derive(Debug, Default)]
pub(super) struct KernelProgress {
    last: u64,
    /// Routes of the states that were asked for and that it has not come to yet.
    asked: VecDeque<(u64, BTreeSet<IpNet>)>,
    routes: BTreeSet<IpNet>,
}

impl KernelProgress {
    /// A further state with these routes is on its way.
    pub(super) fn asked(&mut self, routes: impl Iterator<Item = IpNet>) {
        self.last += 1;
        self.asked.push_back((self.last, routes.collect()));
    }

    /// The kernel has come to that state. It may have left out some before.
    pub(super) fn applied(&mut self, serial: u64) {
        while let Some((at, _)) = self.asked.front()
            && *at <= serial
            && let Some((_, routes)) = self.asked.pop_front()
        {
            self.routes = routes;
        }
    }

    /// Whether the kernel has a route.
    pub(super) fn has(&self, route: &IpNet) -> bool {
        self.routes.contains(route)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_there_once_a_state_with_it_was_reached() {
        let route: IpNet = "10.1.0.0/16".parse().expect("a network");
        let mut progress = KernelProgress::default();
        progress.asked(std::iter::empty());
        progress.asked(std::iter::once(route));
        assert!(!progress.has(&route));
        progress.applied(1);
        assert!(!progress.has(&route));
        progress.asked(std::iter::empty());
        progress.applied(2);
        assert!(progress.has(&route));
        progress.applied(3);
        assert!(!progress.has(&route));
    }
}
