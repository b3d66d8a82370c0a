//! The bytes of a pass, as a module gets them.
use super::{Pass, Waiting};

const HEADER_BYTES: usize = 40;
const WAITING_BYTES: usize = 32;
const RELEASE_BYTES: usize = 16;
pub(super) const ANSWER_BYTES: usize = 4;

impl Pass {
    /// Offset of the answer (bytes).
    pub(super) fn answer_offset(&self) -> usize {
        HEADER_BYTES + WAITING_BYTES * self.waiting.len() + RELEASE_BYTES * self.releases.len()
    }

    /// Size of the input (bytes).
    pub(super) fn size(&self) -> usize {
        self.answer_offset() + ANSWER_BYTES * self.waiting.len()
    }

    /// Writes the input, with an empty answer, to bytes of its size.
    pub(super) fn write(&self, out: &mut [u8]) {
        let (header, rest) = out.split_at_mut(HEADER_BYTES);
        let (waiting, rest) = rest.split_at_mut(WAITING_BYTES * self.waiting.len());
        let (releases, answer) = rest.split_at_mut(RELEASE_BYTES * self.releases.len());
        let offset = HEADER_BYTES + waiting.len();
        let counts = [self.waiting.len(), self.releases.len(), HEADER_BYTES, offset, self.answer_offset(), self.size()];
        let (now, numbers) = header.split_at_mut(8);
        now.copy_from_slice(&self.now_s.to_le_bytes());
        let values = [self.machine_procs, self.free_procs].into_iter().chain(counts.map(|count| count as u32));
        for (number, value) in numbers.as_chunks_mut().0.iter_mut().zip(values) {
            *number = value.to_le_bytes();
        }
        for (bytes, waiting) in waiting.as_chunks_mut::<WAITING_BYTES>().0.iter_mut().zip(&self.waiting) {
            let &Waiting { submit_s, estimate_s, procs, priority, job_class, arrival } = waiting;
            bytes[0..8].copy_from_slice(&submit_s.to_le_bytes());
            bytes[8..16].copy_from_slice(&estimate_s.to_le_bytes());
            bytes[16..20].copy_from_slice(&procs.to_le_bytes());
            bytes[20..24].copy_from_slice(&priority.to_le_bytes());
            bytes[24..28].copy_from_slice(&job_class.to_le_bytes());
            bytes[28..32].copy_from_slice(&arrival.to_le_bytes());
        }
        for (bytes, release) in releases.as_chunks_mut::<RELEASE_BYTES>().0.iter_mut().zip(&self.releases) {
            bytes[0..8].copy_from_slice(&release.at_s.to_le_bytes());
            bytes[8..12].copy_from_slice(&release.procs.to_le_bytes());
            bytes[12..16].copy_from_slice(&release.arrival.to_le_bytes());
        }
        answer.fill(0);
    }
}
