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

    /// Adds a comment line (from its `;`) to the header if it is of the form `; Key: value`.
    pub(super) fn read(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_start_matches(|c: char| c == ';' || c.is_ascii_whitespace());
        if let Some((key, value)) = text.split_once(':') {
            let (key, value) = (key.trim(), value.trim());
            if key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.bytes().all(|b| b.is_ascii_alphanumeric()) {
                self.fields.push((key.to_owned(), value.to_owned()));
            }
        }
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.fields.capacity() * size_of::<(String, String)>()
            + self.fields.iter().map(|(k, v)| k.capacity() + v.capacity()).sum::<usize>()
    }
}
