//! The built-in manifests.

/// Name and text of these manifests.
macro_rules! shipped {
    ($($name:literal)+) => {
        &[$(($name, include_str!(concat!("../manifests/", $name, ".toml")))),+]
    };
}

/// Name and text of every built-in manifest; the first is the quickstart.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    shipped! {
        "quickstart" "etinski2010" "etinski2010_jobs" "frontier" "lawson2005" "lawson2005_sensitivity"
        "aldaoud2011" "aldaoud2011_loads" "aldaoud2011_programs" "aldaoud2011_cluster" "do2013"
        "do2013_dvfs_load" "do2013_dvfs_rate" "do2013_waits" "do2013_long" "tracsim2014" "tracsim2014_caps30"
        "tracsim2014_series" "sc15" "sc15_triples" "sc15_learned" "sc17" "ccgrid2019" "ccgrid2019_weeks"
        "rlscheduler2020" "carbon" "planner" "demand-response"
    }
}

/// The text of a built-in manifest.
pub fn find(name: &str) -> Option<&'static str> {
    builtin().iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
