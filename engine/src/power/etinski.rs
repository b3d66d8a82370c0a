//! The power model of Etinski et al. 2010: dynamic A*f*V^2 and static alpha*V.
use crate::registry::{Default, Entry, Param, Slot, Type};

/// Registry entry of the model.
pub const ENTRY: Entry = Entry {
    slot: Slot::Power,
    name: "etinski",
    version: 1,
    source: "Etinski et al. 2010, eqs. 3 and 4",
    doc: "Busy power A*f*V^2 + alpha*V by gear; an idle processor is at the lowest gear with less activity.",
    params: &[
        Param {
            name: "power_top_w",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: false, unlimited: false },
            unit: "W",
            default: Default::Real(1.0),
            identity: true,
            doc: "Watts of a busy processor at the top gear; 1 gives energy in processor-seconds at the top gear.",
        },
        Param {
            name: "static_share",
            ty: Type::Real { min: 0.0, max: 0.999, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Real(0.25),
            identity: true,
            doc: "Static share of a busy processor's power at the top gear.",
        },
        Param {
            name: "activity_ratio",
            ty: Type::Real { min: 1.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Real(2.5),
            identity: true,
            doc: "Activity factor of a busy processor over that of an idle one.",
        },
    ],
};
