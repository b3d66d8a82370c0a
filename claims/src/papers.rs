//! The papers and studies of today whose claims are part of the program: a file each in `claims/papers/` and
//! `claims/presets/`.

/// Name, claims and presets of these papers.
macro_rules! shipped {
    ($($name:literal)+) => {
        &[$((
            $name,
            include_str!(concat!("../papers/", $name, ".toml")),
            include_str!(concat!("../presets/", $name, ".toml")),
        )),+]
    };
}

/// Studies of the tutorials, which need files besides logs: `reproduce` without a name leaves them out.
const STUDIES: &[&str] = &["carbon", "planner", "demand-response"];

/// Name, claims and presets of every paper, as TOML.
pub fn builtin() -> &'static [(&'static str, &'static str, &'static str)] {
    shipped! {
        "lawson2005" "tracsim2014" "etinski2010" "do2013" "aldaoud2011" "sc15" "sc17" "ccgrid2019"
        "rlscheduler2020" "carbon" "planner" "demand-response"
    }
}

/// The names of all papers.
pub fn names() -> Vec<&'static str> {
    builtin().iter().map(|(name, ..)| *name).collect()
}

/// Whether the claims of this name belong to a study instead of a paper.
pub fn is_study(name: &str) -> bool {
    STUDIES.contains(&name)
}

/// The claims and the presets of a paper, as TOML.
pub fn find(name: &str) -> Option<(&'static str, &'static str)> {
    builtin().iter().find(|(known, ..)| *known == name).map(|(_, claims, presets)| (*claims, *presets))
}
