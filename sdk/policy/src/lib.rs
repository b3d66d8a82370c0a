//! Write a scheduling policy of powersweep as a WebAssembly module.
//!
//! A policy is a function of one scheduling pass. It sees the waiting jobs and the estimated ends of running jobs, and names
//! the jobs that start now:
//!
//! ```
//! use powersweep_policy::{Pass, Starts};
//!
//! /// Any job that fits starts, in queue order.
//! fn first_fit(pass: &Pass, starts: &mut Starts) {
//!     let mut free = pass.free_procs;
//!     for (at, job) in pass.waiting.iter().enumerate() {
//!         if job.procs <= free {
//!             free -= job.procs;
//!             starts.push(at);
//!         }
//!     }
//! }
//!
//! powersweep_policy::policy!(first_fit);
//! ```
//!
//! Every pass begins with the state of a new instance of the module: a `static` keeps nothing from one pass to the next.

use std::cell::UnsafeCell;

/// What a policy sees of one scheduling pass.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// The present instant (s).
    pub now_s: f64,
    /// Procs of the machine.
    pub machine_procs: u32,
    /// Procs that a job can take now.
    pub free_procs: u32,
    /// The waiting jobs, in queue order.
    pub waiting: &'a [Waiting],
    /// Procs that become free, in the order of their instants.
    pub releases: &'a [Release],
}

/// A waiting job.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waiting {
    /// Submit instant (s).
    pub submit_s: f64,
    /// Estimated run time (s).
    pub estimate_s: f64,
    /// Procs.
    pub procs: u32,
    /// Priority; 1 is the highest.
    pub priority: u32,
    /// Class, from 1.
    pub job_class: u32,
    /// Position in the order of arrival, from 0.
    pub arrival: u32,
}

/// Procs that become free: the estimated end of a running job, or procs that wake.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Release {
    /// The instant, not before now (s).
    pub at_s: f64,
    /// Procs.
    pub procs: u32,
    /// Position of the running job in the order of arrival; `u32::MAX` for procs that wake.
    pub arrival: u32,
}

/// The jobs that start, in the order of their starts.
#[derive(Debug)]
pub struct Starts<'a> {
    answer: &'a mut [u32],
    count: usize,
}

impl<'a> Starts<'a> {
    /// No starts, with room for one for each waiting job.
    pub fn new(answer: &'a mut [u32]) -> Starts<'a> {
        Starts { answer, count: 0 }
    }

    /// The waiting job at this position starts.
    ///
    /// # Panics
    /// If more jobs start than wait: the module ends, and with it the task.
    pub fn push(&mut self, position: usize) {
        self.answer[self.count] = position as u32;
        self.count += 1;
    }

    /// The positions so far.
    pub fn positions(&self) -> &[u32] {
        &self.answer[..self.count]
    }
}

/// The header of an input.
#[doc(hidden)]
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    now_s: f64,
    machine_procs: u32,
    free_procs: u32,
    waiting_count: u32,
    releases_count: u32,
    waiting_offset: u32,
    releases_offset: u32,
    answer_offset: u32,
    bytes: u32,
}

/// Room for the inputs of most passes. A module whose memory grows in a pass gets a new instance for the next one, which takes
/// longer.
struct Room(UnsafeCell<[u64; ROOM_WORDS]>);

/// Some 700 waiting jobs with as many releases.
const ROOM_WORDS: usize = 4096;

// SAFETY: a module has one thread.
unsafe impl Sync for Room {}

static ROOM: Room = Room(UnsafeCell::new([0; ROOM_WORDS]));

/// Room for an input, which is never given back: the state of the instance ends with the pass.
#[doc(hidden)]
pub fn room(bytes: u32) -> *mut u8 {
    if bytes as usize <= size_of_val(&ROOM) {
        return ROOM.0.get().cast();
    }
    let words = vec![0u64; (bytes as usize).div_ceil(8)];
    Vec::leak(words).as_mut_ptr().cast()
}

/// Runs a policy on the input at an address.
///
/// # Safety
/// The address is that of an input, as the engine writes it, aligned to 8 bytes.
#[doc(hidden)]
pub unsafe fn run(input: *mut u8, policy: fn(&Pass, &mut Starts)) -> u32 {
    // SAFETY: the engine wrote a header of this layout, and the three lists, which do not overlap, behind it. Their offsets
    // are multiples of 8, that of the answer is a multiple of 4.
    let (header, waiting, releases, answer) = unsafe {
        let header = &*input.cast::<Header>();
        let waiting = input.add(header.waiting_offset as usize).cast::<Waiting>();
        let releases = input.add(header.releases_offset as usize).cast::<Release>();
        let answer = input.add(header.answer_offset as usize).cast::<u32>();
        let count = header.waiting_count as usize;
        (
            header,
            std::slice::from_raw_parts(waiting, count),
            std::slice::from_raw_parts(releases, header.releases_count as usize),
            std::slice::from_raw_parts_mut(answer, count),
        )
    };
    let &Header { now_s, machine_procs, free_procs, .. } = header;
    let mut starts = Starts::new(answer);
    policy(&Pass { now_s, machine_procs, free_procs, waiting, releases }, &mut starts);
    starts.count as u32
}

/// Exports a function `fn(&Pass, &mut Starts)` as the policy of this module.
#[macro_export]
macro_rules! policy {
    ($policy:path) => {
        /// Room for an input.
        #[cfg(target_arch = "wasm32")]
        #[unsafe(no_mangle)]
        pub extern "C" fn powersweep_v1_input(bytes: u32) -> u32 {
            $crate::room(bytes) as u32
        }

        /// One scheduling pass.
        #[cfg(target_arch = "wasm32")]
        #[unsafe(no_mangle)]
        pub extern "C" fn powersweep_v1_schedule(input: u32) -> u32 {
            // SAFETY: the engine calls this with the address that `powersweep_v1_input` gave, once the input is there.
            unsafe { $crate::run(input as *mut u8, $policy) }
        }
    };
}
