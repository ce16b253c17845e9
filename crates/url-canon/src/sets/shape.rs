//! Shapes of values: what tells a session id from a word.

use serde::{Deserialize, Serialize};

/// What a value must look like for a rule to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Shape {
    /// Decimal digits, one or more.
    Digits,
    /// A time in seconds or milliseconds: 10 or 13 digits.
    Timestamp,
    /// 32 hexadecimal digits.
    Hex32,
    /// 8-4-4-4-12 hexadecimal digits.
    Uuid,
    /// An id that no person made: 20 to 128 letters, digits, `.`, `!`, `-` and `_`, digits among them.
    Session,
}

impl Shape {
    /// Whether a value has this shape.
    pub(super) fn fits(self, value: &[u8]) -> bool {
        let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
        let all_digits = digits == value.len();
        match self {
            Self::Digits => all_digits && digits > 0,
            Self::Timestamp => all_digits && matches!(digits, 10 | 13),
            Self::Hex32 => value.len() == 32 && value.iter().all(u8::is_ascii_hexdigit),
            Self::Uuid => {
                value.len() == 36
                    && value.iter().enumerate().all(|(index, byte)| {
                        if matches!(index, 8 | 13 | 18 | 23) {
                            *byte == b'-'
                        } else {
                            byte.is_ascii_hexdigit()
                        }
                    })
            }
            Self::Session => {
                (20..=128).contains(&value.len())
                    && digits > 0
                    && value
                        .iter()
                        .all(|byte| byte.is_ascii_alphanumeric() || b".!-_".contains(byte))
            }
        }
    }
}
