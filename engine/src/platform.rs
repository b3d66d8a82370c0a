//! Machines: classes of equal processors and their gears.
use crate::registry::{Default, Entry, Param, Slot, Type};

/// Registry entry of a machine of equal processors.
pub const ENTRY: Entry = Entry {
    slot: Slot::Platform,
    name: "homogeneous",
    version: 1,
    source: "Etinski et al. 2010, section 4, Table 2",
    doc: "One class of equal processors with a table of gears.",
    params: &[
        Param {
            name: "procs",
            ty: Type::Int { min: 1, max: 1 << 30 },
            unit: "procs",
            default: Default::Unset,
            identity: true,
            doc: "Processors of the machine before `size_factor`; if not given, those that the workload states (header \
                  MaxProcs, else MaxNodes; a generator's machine size).",
        },
        Param {
            name: "size_factor",
            ty: Type::Real { min: 0.0, max: 1e6, min_allowed: false, unlimited: false },
            unit: "",
            default: Default::Real(1.0),
            identity: true,
            doc: "The machine has floor(procs * size_factor + 0.5) processors.",
        },
        Param {
            name: "gears_ghz",
            ty: Type::Reals { min: 1e-6, max: 1e6 },
            unit: "GHz",
            default: Default::Reals(&[0.8, 1.1, 1.4, 1.7, 2.0, 2.3]),
            identity: true,
            doc: "Frequencies of the gears, ascending; the last is the top gear.",
        },
        Param {
            name: "gear_volts",
            ty: Type::Reals { min: 1e-6, max: 1e6 },
            unit: "V",
            default: Default::Reals(&[1.0, 1.1, 1.2, 1.3, 1.4, 1.5]),
            identity: true,
            doc: "Voltage of each gear.",
        },
        Param {
            name: "beta",
            ty: Type::Real { min: 0.0, max: 1.0, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Real(0.5),
            identity: true,
            doc: "Share of a job's run time that scales with frequency: time at f is (beta*(f_top/f - 1) + 1) times \
                  that at the top gear (Etinski eq. 5).",
        },
    ],
};
