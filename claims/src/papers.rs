//! The papers and studies of today whose claims are part of the program: one file each in `claims/papers/`.

/// Name and claims of every paper.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    &[
        ("lawson2005", include_str!("../papers/lawson2005.toml")),
        ("tracsim2014", include_str!("../papers/tracsim2014.toml")),
        ("etinski2010", include_str!("../papers/etinski2010.toml")),
        ("do2013", include_str!("../papers/do2013.toml")),
        ("aldaoud2011", include_str!("../papers/aldaoud2011.toml")),
        ("sc15", include_str!("../papers/sc15.toml")),
        ("sc17", include_str!("../papers/sc17.toml")),
        ("ccgrid2019", include_str!("../papers/ccgrid2019.toml")),
        ("rlscheduler2020", include_str!("../papers/rlscheduler2020.toml")),
        ("carbon", include_str!("../papers/carbon.toml")),
        ("planner", include_str!("../papers/planner.toml")),
        ("demand-response", include_str!("../papers/demand-response.toml")),
    ]
}

/// The names of all papers.
pub fn names() -> Vec<&'static str> {
    builtin().iter().map(|(name, _)| *name).collect()
}

/// Studies of the tutorials, which need files besides logs: `reproduce` without a name leaves them out.
const STUDIES: &[&str] = &["carbon", "planner", "demand-response"];

/// Whether the claims of this name belong to a study instead of a paper.
pub fn is_study(name: &str) -> bool {
    STUDIES.contains(&name)
}

/// Name and presets of every paper: one file each in `claims/presets/`.
const PRESETS: &[(&str, &str)] = &[
    ("lawson2005", include_str!("../presets/lawson2005.toml")),
    ("tracsim2014", include_str!("../presets/tracsim2014.toml")),
    ("etinski2010", include_str!("../presets/etinski2010.toml")),
    ("do2013", include_str!("../presets/do2013.toml")),
    ("aldaoud2011", include_str!("../presets/aldaoud2011.toml")),
    ("sc15", include_str!("../presets/sc15.toml")),
    ("sc17", include_str!("../presets/sc17.toml")),
    ("ccgrid2019", include_str!("../presets/ccgrid2019.toml")),
    ("rlscheduler2020", include_str!("../presets/rlscheduler2020.toml")),
    ("carbon", include_str!("../presets/carbon.toml")),
    ("planner", include_str!("../presets/planner.toml")),
    ("demand-response", include_str!("../presets/demand-response.toml")),
];

/// The claims of a paper, as TOML.
pub fn find(name: &str) -> Option<&'static str> {
    builtin().iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The figures and tables of a paper, as TOML.
pub fn presets(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
