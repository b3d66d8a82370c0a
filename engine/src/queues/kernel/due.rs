//! When each server's job ends, and which one ends next.
use std::hint::select_unpredictable;

/// The end of each server's job, with the least of them always at hand: a tournament among the servers, played anew
/// along one path when one end changes, with no branch that depends on times.
///
/// Ends are kept as the bits of their seconds: numbers of 0 or more order like their bits.
#[derive(Debug, Clone)]
pub(super) struct Due {
    /// Nodes of a complete binary tree, the root at 1, a node's children at 2 i and 2 i + 1; server j is the leaf
    /// `leaves + j`. An inner node is the earlier of its children, of equal ones the left: the lower server.
    nodes: Vec<Node>,
    leaves: usize,
    /// Leaf whose path is not played yet; [`PLAYED`] if none. An end followed by a start on the same server is played once.
    open: usize,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    due: u64,
    server: u32,
}

/// No node: the root is 1.
const PLAYED: usize = 0;

impl Due {
    /// Servers without a job.
    pub(super) fn new(servers: usize) -> Due {
        let leaves = servers.next_power_of_two();
        let never = f64::INFINITY.to_bits();
        let mut nodes = vec![Node { due: never, server: 0 }; 2 * leaves];
        for (server, node) in (0..).zip(&mut nodes[leaves..]) {
            node.server = server;
        }
        let mut due = Due { nodes, leaves, open: PLAYED };
        for leaf in leaves..2 * leaves {
            due.play(leaf);
        }
        due
    }

    /// When a server's job ends (s); infinity without one.
    pub(super) fn of(&self, server: usize) -> f64 {
        f64::from_bits(self.nodes[self.leaves + server].due)
    }

    /// Sets when a server's job ends (s, 0 or more); infinity without one.
    #[inline(always)]
    pub(super) fn set(&mut self, server: usize, due_s: f64) {
        debug_assert!(due_s.is_sign_positive(), "bits of negative numbers order the other way round");
        let leaf = self.leaves + server;
        if self.open != leaf && self.open != PLAYED {
            self.play(self.open);
        }
        self.nodes[leaf].due = due_s.to_bits();
        self.open = leaf;
    }

    /// When the next job ends (s), infinity if none runs, and on which server.
    #[inline(always)]
    pub(super) fn next(&mut self) -> (f64, usize) {
        if self.open != PLAYED {
            self.play(self.open);
            self.open = PLAYED;
        }
        let first = self.nodes[1];
        (f64::from_bits(first.due), first.server as usize)
    }

    /// Brings the nodes above a leaf up to date.
    #[inline(always)]
    fn play(&mut self, leaf: usize) {
        let (mut at, mut winner) = (leaf, self.nodes[leaf]);
        while at > 1 {
            let rival = self.nodes[at ^ 1];
            // The left one, with an even number, wins ties.
            let loses = rival.due < winner.due + (at as u64 & 1);
            winner.due = select_unpredictable(loses, rival.due, winner.due);
            winner.server = select_unpredictable(loses, rival.server, winner.server);
            at /= 2;
            self.nodes[at] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Philox, Purpose};

    #[test]
    fn the_next_is_the_first_of_the_least() {
        for servers in [1, 2, 3, 7, 8, 24, 33] {
            let mut random = Philox::substream(1, Purpose::Shuffle, servers as u32);
            let mut due = Due::new(servers);
            let mut plain = vec![f64::INFINITY; servers];
            assert_eq!(due.next(), (f64::INFINITY, 0));
            for _ in 0..2000 {
                // Few values, so that many are equal; often several changes before the next is asked for.
                let server = random.below(servers as u64) as usize;
                let value = [0.0, 1.0, 2.5, f64::INFINITY, f64::INFINITY][random.below(5) as usize];
                due.set(server, value);
                plain[server] = value;
                assert_eq!(due.of(server), value);
                if random.chance(0.6) {
                    let least = plain.iter().copied().fold(f64::INFINITY, f64::min);
                    let first = plain.iter().position(|v| *v == least).unwrap();
                    assert_eq!(due.next(), (least, first), "{plain:?}");
                }
            }
        }
    }
}
