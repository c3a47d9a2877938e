//! What a chat template expects of Python: str(), json.dumps, strftime and the methods of str, list and dict.

use std::ffi::CString;
use std::fmt::Write;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat;

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// str(value)
pub fn str(value: &Value) -> String {
    match value.kind() {
        ValueKind::Number if !value.is_integer() => float_repr(value),
        ValueKind::Seq | ValueKind::Map if value.as_object().is_some_and(|object| object.enumerator_len().is_some()) => {
            let mut out = String::new();
            write_repr(value, &mut out);
            out
        }
        _ => value.to_string(),
    }
}

/// repr(value)
fn write_repr(value: &Value, out: &mut String) {
    match value.kind() {
        ValueKind::Seq => {
            let brackets = if value.is_tuple() { ('(', ')') } else { ('[', ']') };
            write_repr_items(brackets, value, out, |item, out| write_repr(item, out));
            if value.is_tuple() && value.len() == Some(1) {
                out.insert(out.len() - 1, ',');
            }
        }
        ValueKind::Map => write_repr_items(('{', '}'), value, out, |key, out| {
            write_repr(key, out);
            out.push_str(": ");
            write_repr(&value.get_item(key).unwrap_or_default(), out);
        }),
        ValueKind::String => write_repr_string(value.as_str().unwrap_or_default(), out),
        _ => out.push_str(&str(value)),
    }
}

/// repr() of a string: in single quotes unless it has some and no double ones; what does not print is escaped.
fn write_repr_string(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => {
                let _ = match c as u32 {
                    code @ 0..=0xFF => write!(out, "\\x{code:02x}"),
                    code @ 0..=0xFFFF => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// Rust's notion of printable, which like Python's is that of the Unicode categories. A letter in front keeps combining
/// marks from counting as unprintable.
fn is_printable(c: char) -> bool {
    !String::from_iter(['a', c]).escape_debug().any(|escaped| escaped == '{') || c == '{'
}

fn write_repr_items(
    brackets: (char, char), container: &Value, out: &mut String, mut write_item: impl FnMut(&Value, &mut String),
) {
    out.push(brackets.0);
    for (at, item) in container.try_iter().into_iter().flatten().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_item(&item, out);
    }
    out.push(brackets.1);
}

/// repr() of a float: the shortest digits that read back the same, in exponent form from 1e16 up and below 1e-4.
fn float_repr(value: &Value) -> String {
    let number = f64::try_from(value.clone()).unwrap_or(f64::NAN);
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// datetime.now().strftime(format), with `now` in seconds since the epoch, in local time.
pub fn strftime(format: &str, now: i64) -> Result<String, Error> {
    // A naive datetime has no zone and these renders no fraction: Python settles both before it calls strftime(3).
    let format = format.replace("%f", "000000").replace("%z", "").replace("%Z", "");
    let format = CString::new(format).map_err(|_| invalid("strftime format with a NUL"))?;
    let mut text = vec![0u8; 4096];
    let written = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&now, &mut parts);
        libc::strftime(text.as_mut_ptr().cast(), text.len(), format.as_ptr(), &parts)
    };
    text.truncate(written);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The methods of Python's str that minijinja's own compatibility layer lacks, then that layer.
pub fn call_method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    if let (Some(text), Some(argument)) = (value.as_str(), args.first().and_then(Value::as_str)) {
        let whole = || Value::from(text);
        let parts = |parts: [&str; 3]| Ok(Value::from(parts.map(Value::from).to_vec()));
        match method {
            "removeprefix" => return Ok(text.strip_prefix(argument).map_or_else(whole, Value::from)),
            "removesuffix" => return Ok(text.strip_suffix(argument).map_or_else(whole, Value::from)),
            "partition" => {
                return parts(text.split_once(argument).map_or([text, "", ""], |(a, b)| [a, argument, b]))
            }
            "rpartition" => {
                return parts(text.rsplit_once(argument).map_or(["", "", text], |(a, b)| [a, argument, b]))
            }
            _ => {}
        }
    }
    pycompat::unknown_method_callback(state, value, method, args)
}

/// How many bytes text.replace(from, to) would have.
pub fn replaced_bytes(text: &str, from: &str, to: &str) -> usize {
    let found = if from.is_empty() { text.chars().count() + 1 } else { text.matches(from).count() };
    text.len().saturating_add(found.saturating_mul(to.len()))
}

/// How many bytes a method's result may have, for the methods that can return far more than they were given.
pub fn method_result_bytes(value: &Value, method: &str, args: &[Value]) -> usize {
    let text = |value: Option<&Value>| value.and_then(|value| value.as_str().map(String::from)).unwrap_or_default();
    match method {
        "replace" => replaced_bytes(&text(Some(value)), &text(args.first()), &text(args.get(1))),
        "join" => args.first().and_then(Value::len).unwrap_or(0).saturating_mul(text(Some(value)).len()),
        _ => 0,
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
        ensure_ascii: bool, indent: Option<Value>, separators: Option<Value>, sort_keys: bool,
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

/// json.dumps(value)
pub fn json_dumps(value: &Value, style: &JsonStyle) -> Result<String, Error> {
    let mut out = String::new();
    write_json(value, style, 0, &mut out)?;
    Ok(out)
}

fn write_json(value: &Value, style: &JsonStyle, depth: usize, out: &mut String) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&json_number(value)),
        ValueKind::String => write_json_string(value.as_str().unwrap_or_default(), style, out),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            write_items(('[', ']'), items.iter(), style, depth, out, |item, out| {
                write_json(item, style, depth + 1, out)
            })?;
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort_keys {
                keys.sort();
            }
            write_items(('{', '}'), keys.iter(), style, depth, out, |key, out| {
                write_json_string(&json_key(key)?, style, out);
                out.push_str(&style.key_separator);
                write_json(&value.get_item(key)?, style, depth + 1, out)
            })?;
        }
        kind => return Err(invalid(format!("{kind} is not JSON serializable"))),
    }
    Ok(())
}

fn write_items<'a>(
    brackets: (char, char), items: impl ExactSizeIterator<Item = &'a Value>, style: &JsonStyle, depth: usize,
    out: &mut String, mut write_item: impl FnMut(&Value, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    let empty = items.len() == 0;
    out.push(brackets.0);
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push_str(&style.item_separator);
        }
        break_line(style, depth + 1, out);
        write_item(item, out)?;
    }
    if !empty {
        break_line(style, depth, out);
    }
    out.push(brackets.1);
    Ok(())
}

fn break_line(style: &JsonStyle, depth: usize, out: &mut String) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        (0..depth).for_each(|_| out.push_str(indent));
    }
}

fn json_number(value: &Value) -> String {
    match str(value).as_str() {
        "nan" => "NaN".into(),
        "inf" => "Infinity".into(),
        "-inf" => "-Infinity".into(),
        number => number.into(),
    }
}

fn json_key(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().into()),
        ValueKind::None => Ok("null".into()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.into()),
        ValueKind::Number => Ok(json_number(key)),
        kind => Err(invalid(format!("{kind} cannot be a JSON key"))),
    }
}

fn write_json_string(text: &str, style: &JsonStyle, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (style.ensure_ascii && !(' '..='~').contains(&c)) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
