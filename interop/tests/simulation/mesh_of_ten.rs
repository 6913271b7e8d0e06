//! Ten nodes, every one with every other.

use super::*;

/// Round-trip times between ten places, 5 to 250 ms.
#[expect(clippy::needless_range_loop, reason = "a table that is its own mirror image is filled by index")]
fn distances(seed: u64) -> Vec<Vec<u64>> {
    let mut random = Random::new(seed);
    let mut table = vec![vec![0; 10]; 10];
    for a in 0..10 {
        for b in 0..a {
            let distance = 5 + random.next_u64() % 246;
            table[a][b] = distance;
            table[b][a] = distance;
        }
    }
    table
}

/// The least metric between each pair, by Floyd and Warshall: 8 for a link, and 4 for each millisecond beyond
/// the first.
fn least_metrics(distances: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let cost = |rtt: u64| 8 + 4 * rtt.saturating_sub(1);
    let mut least: Vec<Vec<u64>> =
        distances.iter().map(|row| row.iter().map(|rtt| cost(*rtt)).collect()).collect();
    for via in 0..10 {
        for a in 0..10 {
            for b in 0..10 {
                least[a][b] = least[a][b].min(least[a][via] + least[via][b]);
            }
        }
    }
    least
}

#[test]
fn all_pairs_exchange_packets_of_both_families_on_the_fastest_ways() {
    let distances = distances(10);
    let mut mesh = Simulation::new(10);
    let nodes: Vec<NodeId> = (0..10).map(|index| mesh.add(Blueprint::new(format!("n{index}")))).collect();
    for (a, row) in distances.iter().enumerate() {
        for (b, distance) in row.iter().enumerate().take(a) {
            mesh.set_link(nodes[a], nodes[b], rtt(*distance));
        }
    }
    mesh.start_all();
    let time = converge(&mut mesh);
    assert!(time < seconds(3), "a mesh after {time:?}");
    let least = least_metrics(&distances);
    let metric = |way: &[NodeId]| -> u64 {
        way.windows(2).map(|hop| 8 + 4 * distances[hop[0].0][hop[1].0].saturating_sub(1)).sum()
    };
    let mut sent = Vec::new();
    for from in &nodes {
        for to in nodes.iter().filter(|to| *to != from) {
            let way = mesh.way(*from, *to).expect("a way");
            let (metric, least) = (metric(&way), least[from.0][to.0]);
            assert!(metric <= least + 40, "{way:?} costs {metric}, the best {least}");
            sent.push((*to, mesh.send(*from, &mesh.packet(*from, *to))));
            sent.push((*to, mesh.send(*from, &mesh.packet_ip4(*from, *to))));
        }
    }
    mesh.run_for(seconds(2));
    for (to, packet) in sent {
        assert_eq!(mesh.journey(packet).arrival().map(|(at, _)| at), Some(to));
    }
    assert_only_ciphertext_on_the_underlay(&mesh);
    assert!(nodes.iter().all(|node| mesh.overflow(*node) == 0), "the control plane floods its data path");
}
