//! Reads JSON as json.loads does, and writes it as json.dumps does (for `tojson`).

use std::fmt::{self, Write};
use std::sync::Arc;

use jiter::JsonValue;
use minijinja::value::{Object, ObjectRepr, Value, ValueKind};
use minijinja::Error;

use crate::python::{self, invalid};
use crate::Outcome;

/// An empty text is None. field: the name that errors report.
pub fn loads(field: &str, text: &str) -> Outcome<Value> {
    if text.is_empty() {
        return Ok(Value::from(()));
    }
    let parsed = JsonValue::parse(text.as_bytes(), false);
    value_of(&parsed.map_err(|e| format!("{field}: invalid JSON: {}", e.description(text.as_bytes())))?)
        .map_err(|e| format!("{field}: {e}"))
}

fn value_of(json: &JsonValue) -> Outcome<Value> {
    Ok(match json {
        JsonValue::Null => Value::from(()),
        JsonValue::Bool(flag) => Value::from(*flag),
        JsonValue::Int(number) => Value::from(*number),
        JsonValue::BigInt(number) => {
            let digits = number.to_string();
            digits.parse::<i128>().map_or_else(|_| Value::from_object(LongInteger(digits)), Value::from)
        }
        JsonValue::Float(number) => Value::from(*number),
        JsonValue::Str(text) => Value::from(text.as_ref()),
        JsonValue::Array(items) => Value::from(items.iter().map(value_of).collect::<Outcome<Vec<Value>>>()?),
        JsonValue::Object(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| Ok((key.as_ref(), value_of(value)?)));
            Value::from_pairs(pairs.collect::<Outcome<Vec<_>>>()?)
        }
    })
}

/// An integer that is too large for minijinja. Templates can only print it.
#[derive(Debug)]
struct LongInteger(String);

impl Object for LongInteger {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

pub struct JsonStyle {
    ensure_ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

impl JsonStyle {
    pub fn new(
        ensure_ascii: bool,
        indent: Option<Value>,
        separators: Option<Value>,
        sort_keys: bool,
    ) -> Result<JsonStyle, Error> {
        let indent = match indent {
            None => None,
            Some(indent) if indent.as_str().is_some() => indent.as_str().map(String::from),
            Some(indent) => {
                let width = indent.as_i64().ok_or_else(|| invalid("tojson: indent must be a number or a string"))?;
                Some(" ".repeat(width.clamp(0, 64) as usize))
            }
        };
        let separator = |at: usize, default: &str| match &separators {
            None => Ok(default.to_string()),
            Some(given) => match given.get_item_by_index(at)?.as_str() {
                Some(text) => Ok(text.to_string()),
                None => Err(invalid("tojson: separators must be two strings")),
            },
        };
        let item_separator = separator(0, if indent.is_some() { "," } else { ", " })?;
        let key_separator = separator(1, ": ")?;
        Ok(JsonStyle { ensure_ascii, indent, item_separator, key_separator, sort_keys })
    }
}

/// Returns an error if the result is longer than bytes_max.
pub fn dumps(value: &Value, style: &JsonStyle, bytes_max: usize) -> Result<String, Error> {
    let mut writer = Writer { style, bytes_max, depth: 0, out: String::new() };
    writer.value(value)?;
    Ok(writer.out)
}

struct Writer<'a> {
    style: &'a JsonStyle,
    bytes_max: usize,
    depth: usize,
    out: String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.out.push_str(&number(value)),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq => self.items(('[', ']'), value.try_iter()?.collect(), |writer, item| writer.value(item))?,
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.style.sort_keys {
                    keys.sort();
                }
                self.items(('{', '}'), keys, |writer, key| {
                    writer.string(&key_text(key)?);
                    writer.out.push_str(&writer.style.key_separator);
                    writer.value(&value.get_item(key)?)
                })?;
            }
            kind => match value.downcast_object_ref::<LongInteger>() {
                Some(integer) => self.out.push_str(&integer.0),
                None => return Err(invalid(format!("{kind} is not JSON serializable"))),
            },
        }
        Ok(())
    }

    fn items(
        &mut self,
        brackets: (char, char),
        items: Vec<Value>,
        write_item: impl Fn(&mut Self, &Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.out.push(brackets.0);
        self.depth += 1;
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.out.push_str(&self.style.item_separator);
            }
            self.break_line();
            write_item(self, item)?;
            if self.out.len() > self.bytes_max {
                return Err(invalid("tojson: the text is too long"));
            }
        }
        self.depth -= 1;
        if !items.is_empty() {
            self.break_line();
        }
        self.out.push(brackets.1);
        Ok(())
    }

    fn break_line(&mut self) {
        if let Some(indent) = &self.style.indent {
            self.out.push('\n');
            (0..self.depth).for_each(|_| self.out.push_str(indent));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' || (self.style.ensure_ascii && !(' '..='~').contains(&c)) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(self.out, "\\u{unit:04x}");
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

fn number(value: &Value) -> String {
    match python::str(value).as_str() {
        "nan" => "NaN".into(),
        "inf" => "Infinity".into(),
        "-inf" => "-Infinity".into(),
        number => number.into(),
    }
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().into()),
        ValueKind::None => Ok("null".into()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.into()),
        ValueKind::Number => Ok(number(key)),
        kind => Err(invalid(format!("{kind} cannot be a JSON key"))),
    }
}
