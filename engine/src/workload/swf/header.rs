//! The header comments of a log.

/// The `; Key: value` comments of a log in file order, all keys kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// Key and value, both without surrounding blanks. A key may occur several times (`Queue`, `Note`).
    pub fields: Vec<(String, String)>,
}

impl Header {
    /// The first value of a key; the case of the key does not matter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, v)| v.as_str())
    }

    /// The whole number at the start of a key's value ("1664 (72, 1368, 224)" gives 1664). `None` if the key is absent
    /// or its value does not begin with a number.
    pub fn number(&self, key: &str) -> Option<i64> {
        let value = self.get(key)?;
        let end = value.bytes().enumerate().take_while(|(i, b)| b.is_ascii_digit() || (*i == 0 && *b == b'-')).count();
        value[..end].parse().ok()
    }

    /// Processors of the machine: MaxProcs, else MaxNodes; `None` if neither states a positive number.
    pub fn procs(&self) -> Option<u32> {
        ["MaxProcs", "MaxNodes"]
            .into_iter()
            .find_map(|key| self.number(key).filter(|n| (1..=1 << 30).contains(n)))
            .and_then(|n| u32::try_from(n).ok())
    }

    /// Unix time (s) of the log's second 0.
    pub fn unix_start_s(&self) -> Option<i64> {
        self.number("UnixStartTime")
    }

    /// Adds a comment line (from its `;`) to the header if it is of the form `; Key: value`. An error for a value of a key with a
    /// number that is read as a number which it does not mean.
    pub(super) fn read(&mut self, line: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_start_matches(|c: char| c == ';' || c.is_ascii_whitespace());
        if let Some((key, value)) = text.split_once(':') {
            let (key, value) = (key.trim(), value.trim());
            if key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.bytes().all(|b| b.is_ascii_alphanumeric()) {
                if is_misleading(key, value) {
                    return Err(format!("`{key}` is {value:?}: write a whole number without separators"));
                }
                self.fields.push((key.to_owned(), value.to_owned()));
            }
        }
        Ok(())
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.fields.capacity() * size_of::<(String, String)>()
            + self.fields.iter().map(|(k, v)| k.capacity() + v.capacity()).sum::<usize>()
    }
}

/// Whether the value of a key with a number has a separator in the number, as in "1,024", or is a date in place of a Unix time.
fn is_misleading(key: &str, value: &str) -> bool {
    let is = |known: &str| key.eq_ignore_ascii_case(known);
    let number = value.trim_start_matches('-');
    let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let (has_number, has_digit) = (rest.len() < number.len(), value.contains(|c: char| c.is_ascii_digit()));
    let more = rest.strip_prefix([',', '.']).filter(|more| more.starts_with(|c: char| c.is_ascii_digit()));
    // A program may write a whole number as 128.0.
    let has_separator = has_number && more.is_some_and(|more| more != "0");
    let is_date = is("UnixStartTime") && has_digit && (!has_number || rest.starts_with('-'));
    ["MaxProcs", "MaxNodes", "UnixStartTime"].into_iter().any(is) && (has_separator || is_date)
}
