//! The built-in manifests.

/// Name and text of every built-in manifest; the first is the quickstart.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    &[
        ("quickstart", include_str!("../manifests/quickstart.toml")),
        ("etinski2010", include_str!("../manifests/etinski2010.toml")),
        ("etinski2010_jobs", include_str!("../manifests/etinski2010_jobs.toml")),
        ("frontier", include_str!("../manifests/frontier.toml")),
        ("lawson2005", include_str!("../manifests/lawson2005.toml")),
        ("lawson2005_sensitivity", include_str!("../manifests/lawson2005_sensitivity.toml")),
        ("aldaoud2011", include_str!("../manifests/aldaoud2011.toml")),
        ("aldaoud2011_loads", include_str!("../manifests/aldaoud2011_loads.toml")),
        ("aldaoud2011_programs", include_str!("../manifests/aldaoud2011_programs.toml")),
        ("aldaoud2011_cluster", include_str!("../manifests/aldaoud2011_cluster.toml")),
        ("do2013", include_str!("../manifests/do2013.toml")),
        ("do2013_dvfs_load", include_str!("../manifests/do2013_dvfs_load.toml")),
        ("do2013_dvfs_rate", include_str!("../manifests/do2013_dvfs_rate.toml")),
        ("do2013_waits", include_str!("../manifests/do2013_waits.toml")),
        ("do2013_long", include_str!("../manifests/do2013_long.toml")),
        ("tracsim2014", include_str!("../manifests/tracsim2014.toml")),
        ("tracsim2014_caps30", include_str!("../manifests/tracsim2014_caps30.toml")),
        ("tracsim2014_series", include_str!("../manifests/tracsim2014_series.toml")),
        ("sc15", include_str!("../manifests/sc15.toml")),
        ("sc15_triples", include_str!("../manifests/sc15_triples.toml")),
        ("sc15_learned", include_str!("../manifests/sc15_learned.toml")),
        ("sc17", include_str!("../manifests/sc17.toml")),
        ("ccgrid2019", include_str!("../manifests/ccgrid2019.toml")),
        ("ccgrid2019_weeks", include_str!("../manifests/ccgrid2019_weeks.toml")),
        ("rlscheduler2020", include_str!("../manifests/rlscheduler2020.toml")),
        ("carbon", include_str!("../manifests/carbon.toml")),
        ("planner", include_str!("../manifests/planner.toml")),
        ("demand-response", include_str!("../manifests/demand-response.toml")),
    ]
}

/// The text of a built-in manifest.
pub fn find(name: &str) -> Option<&'static str> {
    builtin().iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
