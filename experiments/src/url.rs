//! Files that are named by URL or path.

/// Whether a file is named by URL, not by path.
pub fn is_url(name: &str) -> bool {
    let starts = |scheme: &str| name.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    starts("http://") || starts("https://")
}

/// Whether a URL has a user name or a password: everyone who reads the manifest, the state or the rows would read it.
pub fn has_user(url: &str) -> bool {
    is_url(url) && authority(url).contains('@')
}

/// A URL for messages and metadata, without user, password, query and fragment, which may be secrets.
pub fn public(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let authority = authority(url);
    let host = authority.rsplit('@').next().unwrap_or_default();
    url[..end].replacen(authority, host, 1)
}

/// The name that stands for a file of this place: the place itself, unless it is an absolute path or a URL with secrets.
pub fn public_name(place: &str) -> String {
    match (is_url(place), place.starts_with('/')) {
        (true, _) => public(place),
        (_, true) => place.rsplit('/').find(|name| !name.is_empty()).unwrap_or(place).to_owned(),
        _ => place.to_owned(),
    }
}

/// The part with user, host and port.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_url_are_left_out() {
        for (url, shown) in [
            ("https://h/a.swf", "https://h/a.swf"),
            ("https://ann:pw@h:8443/a.swf?X-Signature=s#f", "https://h:8443/a.swf"),
            ("HTTP://ann@h?token=a@b/c", "HTTP://h"),
            ("https://h/a@b.swf", "https://h/a@b.swf"),
        ] {
            assert_eq!(public(url), shown);
        }
        assert!(has_user("https://ann:pw@h/a") && has_user("HTTPS://ann@h"));
        assert!(!has_user("https://h/a@b?c@d") && !has_user("logs@home/a.swf"));
    }
}
