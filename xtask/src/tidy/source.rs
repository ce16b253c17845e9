//! Rust text with comments and literals blanked, and the functions found in it.
//!
//! Blanking keeps every line break and the length of every line in bytes, so positions in the
//! blanked text are positions in the file.

/// A `fn` with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line of the `fn` keyword, from 1.
    pub(crate) line: usize,
    /// From the `fn` keyword to the closing brace, both included.
    pub(crate) lines: usize,
}

/// Code of one file, without what people and the compiler's lexer treat as text.
pub(crate) struct Source {
    pub(crate) code: String,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let mut code = text.as_bytes().to_vec();
        let mut at = 0;
        while at < code.len() {
            let end = literal_end(text.as_bytes(), at);
            for byte in &mut code[at..end.max(at)] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            at = end.max(at + 1);
        }
        // Only whole literals and comments were blanked, so what is left is valid UTF-8.
        Self {
            code: String::from_utf8(code).expect("blanking replaces whole characters"),
        }
    }

    /// Lines of code with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    pub(crate) fn functions(&self) -> Vec<Function> {
        let bytes = self.code.as_bytes();
        let mut found = Vec::new();
        for (at, _) in self.code.match_indices("fn ") {
            let name: String = self.code[at + 3..]
                .trim_start()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            let starts_word = at == 0 || !is_word(bytes[at - 1]);
            if !starts_word || name.is_empty() {
                continue;
            }
            if let Some(end) = body_end(bytes, at) {
                let line = 1 + count_lines(&bytes[..at]);
                found.push(Function {
                    name,
                    line,
                    lines: 1 + count_lines(&bytes[at..end]),
                });
            }
        }
        found
    }
}

/// Whether `line` has `word` with no word character on either side.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let bytes = line.as_bytes();
        let before = at == 0 || !is_word(bytes[at - 1]);
        let after = bytes.get(at + word.len()).is_none_or(|byte| !is_word(*byte));
        before && after
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Position of the brace that closes the body of the `fn` at `at`; `None` for a bare signature.
fn body_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut round, mut curly, mut in_body) = (0_i32, 0_i32, false);
    for (position, byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            b'(' | b'[' if !in_body => round += 1,
            b')' | b']' if !in_body => {
                round -= 1;
                // `fn` pointer type inside another signature: no body of its own.
                if round < 0 {
                    return None;
                }
            }
            b';' if !in_body && round == 0 => return None,
            b'{' if round == 0 => {
                in_body = true;
                curly += 1;
            }
            b'}' if in_body => {
                curly -= 1;
                if curly == 0 {
                    return Some(position);
                }
            }
            b'}' if round == 0 => return None,
            _ => {}
        }
    }
    None
}

/// End of the comment or literal that starts at `at`; `at` itself when none starts there.
fn literal_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + block_comment_length(rest);
    }
    if at > 0 && is_word(text[at - 1]) && rest[0] != b'"' {
        return at;
    }
    match rest[0] {
        b'"' => at + quoted_length(rest),
        b'r' | b'b' | b'c' => at + prefixed_length(rest),
        b'\'' => at + char_length(rest),
        _ => at,
    }
}

fn block_comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Length of a string that starts with `"` and may hold escapes.
fn quoted_length(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of `r"…"`, `r#"…"#`, `b"…"`, `br"…"`, `c"…"`, `b'…'`; 0 for an identifier.
fn prefixed_length(rest: &[u8]) -> usize {
    let letters = rest
        .iter()
        .take_while(|byte| matches!(byte, b'r' | b'b' | b'c'))
        .count();
    let after = &rest[letters..];
    let raw = rest[..letters].contains(&b'r');
    let hashes = after.iter().take_while(|byte| **byte == b'#').count();
    match after.get(hashes) {
        Some(b'"') if raw => {
            let close: Vec<u8> = std::iter::once(b'"')
                .chain(std::iter::repeat_n(b'#', hashes))
                .collect();
            let body = &after[hashes + 1..];
            let end = body.windows(close.len()).position(|window| window == close);
            end.map_or(rest.len(), |end| letters + hashes + 1 + end + close.len())
        }
        Some(b'"') if hashes == 0 => letters + quoted_length(after),
        Some(b'\'') if hashes == 0 && letters == 1 && rest[0] == b'b' => letters + char_length(after),
        _ => 0,
    }
}

/// Length of a character literal; 0 for a lifetime.
fn char_length(rest: &[u8]) -> usize {
    match rest.get(1) {
        Some(b'\\') => {
            let end = rest.iter().skip(3).position(|byte| *byte == b'\'');
            end.map_or(rest.len(), |end| end + 4)
        }
        Some(first) => {
            let width = match first {
                0x00..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                _ => 4,
            };
            if rest.get(1 + width) == Some(&b'\'') {
                width + 2
            } else {
                0
            }
        }
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_blanked(text: &str, expected: &str) {
        assert_eq!(Source::new(text).code, expected);
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        check_blanked("a // b\nc", "a     \nc");
        check_blanked("a /* b /* c */ d */ e", "a                   e");
        check_blanked(r#"f("a\"b", 1)"#, "f(      , 1)");
        check_blanked("r#\"a\"b\"# x", "         x");
        check_blanked("b\"fn \" b'x' br\"\\\" y", "                  y");
        check_blanked("'a' '\\'' '\\u{1}' &'a str '{'", "                 &'a str    ");
        check_blanked("\"é\" 'é' x", "          x");
        check_blanked("brown(rest)", "brown(rest)");
    }

    #[test]
    fn functions_are_measured_to_their_closing_brace() {
        let text = "fn a() {}\npub fn b<T: Fn(u8) -> u8>(x: [u8; 3]) -> T\nwhere\n    T: Copy,\n{\n    \"}\";\n    { x }\n}\ntrait C {\n    fn d(&self);\n    fn e(&self) {\n    }\n}\ntype F = fn(u8);\n";
        let found = Source::new(text).functions();
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
        assert_eq!(found, [("a", 1, 1), ("b", 2, 7), ("e", 11, 2)]);
    }

    #[test]
    fn words_end_at_word_characters() {
        assert!(has_word("unsafe {", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe"));
        assert!(!has_word("my_unsafe", "unsafe"));
    }
}
