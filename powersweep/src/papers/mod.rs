//! Papers: their claims, figures and tables beside the rows of their experiments.

pub mod check;
pub mod presets;
#[cfg(feature = "figures")]
pub mod reproduce;

use std::path::Path;

use powersweep_claims::{Claims, Preset, Presets, papers};
use powersweep_dataset::{Error, failure};
use powersweep_experiments::reading::{add_new, hint, unknown};
use powersweep_experiments::{Manifest, ManifestErrors, manifests};
use serde::Serialize;

pub use self::check::{Checked, Sweeps};
pub use self::presets::{Chosen, choose};
use crate::inputs;

/// A paper or study: one that is part of the program, or one of the user's own.
#[derive(Debug, Clone)]
pub struct Paper {
    /// Its name, such as `etinski2010`.
    pub name: String,
    /// The claims.
    pub claims: Claims,
    /// The figures and tables.
    pub presets: Presets,
    /// The text of the claims.
    pub claims_text: String,
    /// The text of the figures and tables, where it is another one.
    pub presets_text: Option<String>,
    /// The file of claims; `None` for a paper of the program.
    pub file: Option<String>,
}

/// A paper in a list.
#[derive(Debug, Clone, Serialize)]
pub struct ListedPaper {
    /// Its name.
    pub paper: String,
    /// Authors, year and title.
    pub title: String,
    /// Number of claims.
    pub claims: usize,
    /// Number of demanded claims.
    pub demanded: usize,
    /// The manifests whose rows the claims need.
    pub manifests: Vec<String>,
}

/// Every paper.
pub fn all() -> Result<Vec<Paper>, Error> {
    papers::names().into_iter().map(Paper::find).collect()
}

impl Paper {
    /// The paper of the program that has this name; `None` without one.
    fn shipped(name: &str) -> Result<Option<Paper>, Error> {
        let Some((claims, presets)) = papers::find(name) else { return Ok(None) };
        let file = format!("{name} (shipped)");
        let paper = Paper::parse(&file, claims, Some((&file, presets)), inputs::problems)?;
        Ok(Some(Paper { name: name.to_owned(), ..paper }))
    }

    /// The paper of these texts. Without `presets`, a name and a text, the text of the claims may have them. Errors, which `problems`
    /// makes, have the names.
    ///
    /// # Errors
    /// All problems of the first text that has some.
    pub fn parse(
        file: &str,
        claims_text: &str,
        presets: Option<(&str, &str)>,
        problems: impl Fn(&str, &ManifestErrors) -> Error,
    ) -> Result<Paper, Error> {
        let claims = Claims::parse(file, claims_text).map_err(|errors| problems(file, &errors))?;
        let presets_text = presets.map(|(_, text)| text.to_owned());
        let presets = match presets.or(claims.has_presets().then_some((file, claims_text))) {
            Some((file, text)) => Presets::parse(file, text, &claims).map_err(|errors| problems(file, &errors))?,
            None => Presets::default(),
        };
        let name = claims.paper().to_owned();
        let claims_text = claims_text.to_owned();
        Ok(Paper { name, claims, presets, claims_text, presets_text, file: None })
    }

    /// The paper in the file of this name, whose figures and tables may be in `NAME.presets.toml` beside it; if no such file exists,
    /// the paper of the program that has this name. `problems` makes the error of a file, such as [`inputs::problems`].
    ///
    /// # Errors
    /// There is neither, or the file has problems.
    pub fn open(name: &str, problems: impl Fn(&str, &ManifestErrors) -> Error) -> Result<Paper, Error> {
        if Path::new(name).is_file() {
            let beside = Path::new(name).with_extension("presets.toml").to_string_lossy().into_owned();
            let presets = Path::new(&beside).is_file().then(|| inputs::text(&beside, "presets")).transpose()?;
            let presets = presets.as_ref().map(|text| (beside.as_str(), text.as_str()));
            let paper = Paper::parse(name, &inputs::text(name, "claims")?, presets, problems)?;
            return Ok(Paper { file: Some(name.to_owned()), ..paper });
        }
        if let Some(paper) = Paper::shipped(name)? {
            return Ok(paper);
        }
        let known = papers::names();
        let kind = "paper (neither a file nor shipped claims)";
        let unknown = match hint(name, known.iter().copied()) {
            None => format!("unknown {kind} `{name}`"),
            Some(hint) => format!("unknown {kind} `{name}`; {hint}"),
        };
        Err(failure!(Usage, "{unknown}\npapers: {}", known.join(", ")))
    }

    /// Refuses names that cannot be those of a folder and of files.
    pub(crate) fn check_names(&self) -> Result<(), Error> {
        let mut names = std::iter::once(&self.name).chain(self.presets.all().iter().map(|preset| &preset.name));
        match names.find(|name| !is_name(name)) {
            None => Ok(()),
            Some(name) => {
                let hint = "`paper` and the names of presets become names of files: use letters, digits, - and _";
                Err(failure!(Usage, "the paper {}: `{name}`: {hint}", self.name))
            }
        }
    }

    /// The path or shipped name of a manifest that the claims name: a path starts in the folder of their file.
    pub fn path_of(&self, manifest: &str) -> String {
        let Some(file) = &self.file else { return manifest.to_owned() };
        let path = inputs::folder_of(file).join(manifest);
        let is_shipped = !path.is_file() && manifests::find(manifest).is_some();
        if is_shipped { manifest.to_owned() } else { path.to_string_lossy().into_owned() }
    }

    /// A manifest that the claims name.
    ///
    /// # Errors
    /// There is none of this name, or it has problems.
    pub fn manifest(&self, name: &str) -> Result<Manifest, Error> {
        let (file, text) = inputs::manifest_text(&self.path_of(name))?;
        Manifest::parse(&file, &text).map_err(|errors| inputs::problems(&file, &errors))
    }

    /// The paper in a list.
    pub fn listed(&self) -> ListedPaper {
        let claims = &self.claims;
        ListedPaper {
            paper: claims.paper().to_owned(),
            title: claims.title().to_owned(),
            claims: claims.count(false),
            demanded: claims.count(true),
            manifests: claims.manifests(false).into_iter().map(str::to_owned).collect(),
        }
    }

    /// The paper of the program that has this name.
    pub fn find(name: &str) -> Result<Paper, Error> {
        Paper::shipped(name)?.ok_or_else(|| failure!(Usage, "{}", unknown("paper", name, &papers::names())))
    }

    /// The paper that has an experiment.
    pub fn of(experiment: &str) -> Result<Paper, Error> {
        all()?.into_iter().find(|paper| paper.has(experiment)).ok_or_else(|| {
            let known = papers::names();
            failure!(
                Usage,
                "{experiment} is no experiment of a paper: name the paper, too; papers: {}",
                known.join(", ")
            )
        })
    }

    /// Whether this is the name of the paper or of one of its experiments.
    pub fn has(&self, experiment: &str) -> bool {
        self.name == experiment || self.presets.all().iter().any(|preset| preset.manifests().contains(experiment))
    }

    /// The manifests of the claims and of the figures and tables, each once, in their order.
    pub fn manifests(&self) -> Vec<String> {
        let mut all: Vec<String> = self.claims.manifests(false).into_iter().map(str::to_owned).collect();
        add_new(&mut all, self.presets.all().iter().flat_map(Preset::manifests));
        all
    }
}

/// Whether a text is the name of a file or folder in every system.
fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) && !text.is_empty()
}
