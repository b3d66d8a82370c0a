//! Standard Workload Format: reader of version 2.2 logs as they really are.
use crate::registry::{Default, Entry, Param, Slot, Type};

/// Registry entry of the SWF source.
pub const ENTRY: Entry = Entry {
    slot: Slot::Source,
    name: "swf",
    version: 1,
    source: "Chapin et al. 1999, Standard Workload Format 2.2",
    doc: "A log in the Standard Workload Format, plain, .gz or .zst, by name, path or URL.",
    params: &[
        Param {
            name: "log",
            ty: Type::Text,
            unit: "",
            default: Default::Required,
            identity: false,
            doc: "Name on the search path (POWERSWEEP_TRACES), path, or http(s) URL of the log.",
        },
        Param {
            name: "log_sha256",
            ty: Type::Text,
            unit: "",
            default: Default::Unset,
            identity: false,
            doc: "SHA-256 of the file as downloaded; required for a URL, checked wherever it is given.",
        },
    ],
};
