//! The ends of all running jobs, with quick access to the next one.
use std::hint::select_unpredictable;

/// The end of each server's job, in a tournament tree whose root is the earliest end. A changed end updates one path of the
/// tree, without a branch that depends on times.
///
/// Ends are stored as the bits of their seconds: numbers of 0 or more have the order of their bits.
#[derive(Debug, Clone)]
pub(super) struct Due {
    /// Nodes of a complete binary tree, the root at 1, a node's children at 2 i and 2 i + 1; server j is the leaf
    /// `leaves + j`. An inner node is the earlier of its children, of equal ones the left: the lower server.
    nodes: Vec<Node>,
    leaves: usize,
    /// Leaf whose path is out of date; [`NO_LEAF`] if none is. An end followed by a start on the same server updates its
    /// path once.
    stale: usize,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    due: u64,
    server: u32,
}

/// Stands for no leaf: no node has this index.
const NO_LEAF: usize = 0;

impl Due {
    /// Servers without a job.
    pub(super) fn new(servers: usize) -> Due {
        let leaves = servers.next_power_of_two();
        let never = f64::INFINITY.to_bits();
        let mut nodes = vec![Node { due: never, server: 0 }; 2 * leaves];
        for (server, node) in (0..).zip(&mut nodes[leaves..]) {
            node.server = server;
        }
        let mut due = Due { nodes, leaves, stale: NO_LEAF };
        for leaf in leaves..2 * leaves {
            due.update(leaf);
        }
        due
    }

    /// End of a server's job (s); infinity without a job.
    pub(super) fn of(&self, server: usize) -> f64 {
        f64::from_bits(self.nodes[self.leaves + server].due)
    }

    /// Sets the end of a server's job (s, 0 or more); infinity without a job.
    #[inline(always)]
    pub(super) fn set(&mut self, server: usize, due_s: f64) {
        debug_assert!(due_s.is_sign_positive(), "bits of negative numbers have the reverse order");
        let leaf = self.leaves + server;
        if self.stale != leaf && self.stale != NO_LEAF {
            self.update(self.stale);
        }
        self.nodes[leaf].due = due_s.to_bits();
        self.stale = leaf;
    }

    /// The earliest end (s) and its server; infinity if no job runs.
    #[inline(always)]
    pub(super) fn next(&mut self) -> (f64, usize) {
        if self.stale != NO_LEAF {
            self.update(self.stale);
            self.stale = NO_LEAF;
        }
        let first = self.nodes[1];
        (f64::from_bits(first.due), first.server as usize)
    }

    /// Updates the nodes above a leaf.
    #[inline(always)]
    fn update(&mut self, leaf: usize) {
        let (mut at, mut first) = (leaf, self.nodes[leaf]);
        while at > 1 {
            let sibling = self.nodes[at ^ 1];
            // Of equal ends the left one, with an even index, is first.
            let is_later = sibling.due < first.due + (at as u64 & 1);
            first.due = select_unpredictable(is_later, sibling.due, first.due);
            first.server = select_unpredictable(is_later, sibling.server, first.server);
            at /= 2;
            self.nodes[at] = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Philox, Purpose};

    #[test]
    fn the_next_end_is_the_earliest_on_the_lowest_server() {
        for servers in [1, 2, 3, 7, 8, 24, 33] {
            let mut random = Philox::substream(1, Purpose::Shuffle, servers as u32);
            let mut due = Due::new(servers);
            let mut plain = vec![f64::INFINITY; servers];
            assert_eq!(due.next(), (f64::INFINITY, 0));
            for _ in 0..2000 {
                // Few values, so that many are equal; often several changes between two calls of `next`.
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
