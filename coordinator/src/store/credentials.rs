//! Credentials of object stores in the environment, for messages: the client of the store looks for them itself, in this
//! order. No value of a variable is shown.

use std::path::Path;

/// Reads a variable of the environment.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The credentials that a client would use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The variables or the file that they come from; `None` if the machine itself is asked.
    pub found: Option<String>,
    /// Variables that are of no use without others, and files that do not exist.
    pub problem: Option<String>,
    /// The variables to set.
    pub hint: &'static str,
}

/// A variable that gives the store an address without encryption, which its client does not use; with the variable that allows
/// that.
pub fn unencrypted(scheme: &str, variables: Variables<'_>) -> Option<(&'static str, &'static str)> {
    const ADDRESSES: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
    const ALLOWS: &str = "AWS_ALLOW_HTTP";
    let is_plain = |name: &&str| variables(name).is_some_and(|address| address.starts_with("http://"));
    let is_allowed =
        variables(ALLOWS).is_some_and(|value| ["true", "1", "yes", "on", "y"].contains(&value.to_lowercase().as_str()));
    let found = ADDRESSES.into_iter().find(is_plain).filter(|_| scheme.starts_with("s3") && !is_allowed);
    found.map(|name| (name, ALLOWS))
}

/// Variables that are needed together.
struct Source {
    /// For each its names, of which one is enough.
    needed: &'static [&'static [&'static str]],
    /// The last one names a file.
    names_file: bool,
}

const fn values(needed: &'static [&'static [&'static str]]) -> Source {
    Source { needed, names_file: false }
}

const fn file(needed: &'static [&'static [&'static str]]) -> Source {
    Source { needed, names_file: true }
}

/// A kind of object store.
struct Provider {
    /// Schemes of its addresses.
    schemes: &'static [&'static str],
    /// Beginnings of the names of its variables, and whole names.
    variables: &'static [&'static str],
    /// The first complete source is used.
    sources: &'static [Source],
    /// A file below the home folder, which is used if no source is complete.
    home_file: Option<&'static str>,
    hint: &'static str,
}

const CLIENT: &[&str] = &["AZURE_CLIENT_ID", "AZURE_STORAGE_CLIENT_ID"];
const TENANT: &[&str] =
    &["AZURE_TENANT_ID", "AZURE_AUTHORITY_ID", "AZURE_STORAGE_TENANT_ID", "AZURE_STORAGE_AUTHORITY_ID"];

const PROVIDERS: &[Provider] = &[
    Provider {
        schemes: &["s3", "s3a"],
        variables: &["AWS_"],
        sources: &[
            values(&[&["AWS_SKIP_SIGNATURE"]]),
            values(&[&["AWS_ACCESS_KEY_ID"], &["AWS_SECRET_ACCESS_KEY"]]),
            file(&[&["AWS_ROLE_ARN"], &["AWS_WEB_IDENTITY_TOKEN_FILE"]]),
            values(&[&["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]]),
            file(&[&["AWS_CONTAINER_CREDENTIALS_FULL_URI"], &["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]]),
        ],
        home_file: None,
        hint: "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION (AWS_ENDPOINT for other stores)",
    },
    Provider {
        schemes: &["gs"],
        variables: &["GOOGLE_", "SERVICE_ACCOUNT"],
        sources: &[
            values(&[&["GOOGLE_SKIP_SIGNATURE"]]),
            file(&[&["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "SERVICE_ACCOUNT"]]),
            values(&[&["GOOGLE_SERVICE_ACCOUNT_KEY"]]),
            file(&[&["GOOGLE_APPLICATION_CREDENTIALS"]]),
        ],
        home_file: Some(".config/gcloud/application_default_credentials.json"),
        hint: "set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT",
    },
    Provider {
        schemes: &["az", "azure", "abfs", "abfss"],
        variables: &["AZURE_", "IDENTITY_ENDPOINT"],
        sources: &[
            values(&[&["AZURE_SKIP_SIGNATURE"]]),
            values(&[&["AZURE_STORAGE_TOKEN"]]),
            values(&[&["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY"]]),
            file(&[CLIENT, TENANT, &["AZURE_FEDERATED_TOKEN_FILE"]]),
            values(&[CLIENT, &["AZURE_CLIENT_SECRET", "AZURE_STORAGE_CLIENT_SECRET"], TENANT]),
            values(&[&["AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN"]]),
            values(&[&["AZURE_USE_AZURE_CLI"]]),
        ],
        home_file: None,
        hint: "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    },
];

fn provider(scheme: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.schemes.contains(&scheme))
}

/// Whether a variable is an option of this kind of store. Names without the prefix of their store, such as `TOKEN` or
/// `REGION`, belong to other programs.
pub(super) fn is_option(scheme: &str, variable: &str) -> bool {
    let matches = |name: &&str| if name.ends_with('_') { variable.starts_with(name) } else { variable == *name };
    provider(scheme).is_some_and(|provider| provider.variables.iter().any(matches))
}

/// The credentials for addresses of a scheme; `None` for a directory.
pub fn credentials(scheme: &str, variables: Variables<'_>) -> Option<Credentials> {
    let Provider { sources, home_file, hint, .. } = provider(scheme)?;
    let complete = sources.iter().find(|source| source.missing(variables).is_empty());
    let from_home = || {
        let path = Path::new(&variables("HOME")?).join((*home_file)?);
        path.is_file().then(|| path.display().to_string())
    };
    let found = complete.map(|source| source.present(variables).join(", ")).or_else(from_home);
    let problem = match complete {
        Some(source) => source.lost_file(variables),
        None => sources.iter().find_map(|source| source.incomplete(variables)),
    };
    Some(Credentials { found, problem, hint })
}

/// The variables to set for a scheme.
pub(crate) fn hint(scheme: &str) -> &'static str {
    provider(scheme).map_or("", |provider| provider.hint)
}

/// A variable that is set. An empty one counts as missing.
fn value(name: &str, variables: Variables<'_>) -> Option<String> {
    variables(name).filter(|value| !value.is_empty() && value != "false")
}

impl Source {
    /// The variables that are set.
    fn present(&self, variables: Variables<'_>) -> Vec<&'static str> {
        let set = |names: &&[&'static str]| names.iter().copied().find(|name| value(name, variables).is_some());
        self.needed.iter().filter_map(set).collect()
    }

    /// The variables that are not set, by their usual names.
    fn missing(&self, variables: Variables<'_>) -> Vec<&'static str> {
        let unset = |names: &&&[&'static str]| names.iter().all(|name| value(name, variables).is_none());
        self.needed.iter().filter(unset).map(|names| names[0]).collect()
    }

    /// Which variables are set, and which are missing beside them.
    fn incomplete(&self, variables: Variables<'_>) -> Option<String> {
        let (present, missing) = (self.present(variables), self.missing(variables));
        let words = || format!("{} is set, {} is not", present.join(", "), missing.join(", "));
        (!present.is_empty() && !missing.is_empty()).then(words)
    }

    /// The file of a complete source, if it does not exist.
    fn lost_file(&self, variables: Variables<'_>) -> Option<String> {
        let name = self.present(variables).pop().filter(|_| self.names_file)?;
        let path = value(name, variables)?;
        (!Path::new(&path).is_file()).then(|| format!("{name} names the file {path}, which does not exist"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(scheme: &str, set: &[(&str, &str)]) -> Credentials {
        let variables = |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
        credentials(scheme, &variables).expect("an object store")
    }

    fn shown(scheme: &str, set: &[(&str, &str)]) -> String {
        let Credentials { found, problem, .. } = of(scheme, set);
        [found, problem].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn the_first_complete_source_counts() {
        let keys = [("AWS_ACCESS_KEY_ID", "secret-1"), ("AWS_SECRET_ACCESS_KEY", "secret-2")];
        assert_eq!(shown("s3", &keys), "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY");
        assert_eq!(shown("s3", &keys[..1]), "AWS_ACCESS_KEY_ID is set, AWS_SECRET_ACCESS_KEY is not");
        let container = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x");
        assert_eq!(shown("s3a", &[keys[0], container]), "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        assert_eq!(shown("s3", &[("AWS_ACCESS_KEY_ID", "")]), "");
        let client = [("AZURE_CLIENT_ID", "c"), ("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_SECRET", "s")];
        assert_eq!(shown("az", &client), "AZURE_CLIENT_ID, AZURE_CLIENT_SECRET, AZURE_TENANT_ID");
        assert_eq!(
            shown("abfss", &client[..1]),
            "AZURE_CLIENT_ID is set, AZURE_TENANT_ID, AZURE_FEDERATED_TOKEN_FILE is not"
        );
        assert_eq!(shown("az", &[("AZURE_USE_AZURE_CLI", "true")]), "AZURE_USE_AZURE_CLI");
        assert_eq!(credentials("file", &|_| None), None);
    }

    #[test]
    fn files_must_exist() {
        let home = tempfile::tempdir().expect("a folder");
        let home_text = home.path().to_str().expect("text");
        let lost = format!("{home_text}/key.json");
        assert_eq!(
            shown("gs", &[("GOOGLE_APPLICATION_CREDENTIALS", &lost), ("HOME", home_text)]),
            format!(
                "GOOGLE_APPLICATION_CREDENTIALS; GOOGLE_APPLICATION_CREDENTIALS names the file {lost}, which does not exist"
            )
        );
        assert_eq!(shown("gs", &[("HOME", home_text)]), "");
        let default = home.path().join(".config/gcloud/application_default_credentials.json");
        std::fs::create_dir_all(default.parent().expect("a folder")).expect("made");
        std::fs::write(&default, "{}").expect("written");
        assert_eq!(shown("gs", &[("HOME", home_text)]), default.display().to_string());
        std::fs::write(&lost, "{}").expect("written");
        assert_eq!(shown("gs", &[("SERVICE_ACCOUNT", &lost)]), "SERVICE_ACCOUNT");
    }

    #[test]
    fn variables_of_other_programs_are_no_options() {
        for (scheme, variable) in [("s3", "AWS_REGION"), ("gs", "SERVICE_ACCOUNT"), ("az", "IDENTITY_ENDPOINT")] {
            assert!(is_option(scheme, variable), "{variable}");
        }
        for (scheme, variable) in
            [("s3", "REGION"), ("s3", "TOKEN"), ("gs", "AWS_REGION"), ("az", "PROXY_URL"), ("file", "AWS_X")]
        {
            assert!(!is_option(scheme, variable), "{variable}");
        }
    }
}
