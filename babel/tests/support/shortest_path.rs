//! What routing should come to: shortest paths over the costs that links have when all is calm.

use babel::CostMap;

use super::topology::Network;

/// The cost of a working link.
fn link_cost(network: &Network, link: usize, map: &CostMap) -> u32 {
    let [there, back] = network.links[link].delay;
    u32::from(map.rxcost) + u32::from(map.rtt_cost(there + back))
}

/// The metric from every router to `to`; `None` if unreachable.
pub fn metrics_to(network: &Network, to: usize) -> Vec<Option<u32>> {
    let map = CostMap::default();
    let mut metrics = vec![None; network.routers.len()];
    metrics[to] = Some(0);
    // Bellman and Ford: a round for each possible hop.
    for _ in 0..network.routers.len() {
        for (id, link) in network.links.iter().enumerate() {
            let alive = link.ends.iter().all(|end| network.routers[*end].is_some());
            if link.up != [true; 2] || !alive {
                continue;
            }
            let cost = link_cost(network, id, &map);
            for [from, via] in [link.ends, [link.ends[1], link.ends[0]]] {
                let offered = metrics[via].map(|metric: u32| metric + cost);
                if let Some(offered) = offered
                    && metrics[from].is_none_or(|known| offered < known)
                {
                    metrics[from] = Some(offered);
                }
            }
        }
    }
    metrics
}
