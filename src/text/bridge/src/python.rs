//! Python functions that chat templates use: str(), slices, strftime, and methods of str, list and dict.

use std::ffi::CString;
use std::fmt::Write;

use minijinja::value::{Tuple, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat;

pub fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// str(value)
pub fn str(value: &Value) -> String {
    match value.kind() {
        ValueKind::Number if !value.is_integer() => float_repr(value),
        ValueKind::Seq | ValueKind::Map
            if value.as_object().is_some_and(|object| object.enumerator_len().is_some()) =>
        {
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

/// repr() of a string: in single quotes, unless it contains single and no double quotes. Unprintable
/// characters are escaped.
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

/// Returns true for a printable character. Rust's Unicode categories agree with Python's. The letter before
/// it makes combining marks printable.
fn is_printable(c: char) -> bool {
    !String::from_iter(['a', c]).escape_debug().any(|escaped| escaped == '{') || c == '{'
}

fn write_repr_items(
    brackets: (char, char),
    container: &Value,
    out: &mut String,
    mut write_item: impl FnMut(&Value, &mut String),
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

/// repr() of a float: the shortest digits that give the same number. It has an exponent from 1e16 on, and
/// below 1e-4.
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

/// Returns an error if the text or list would be larger than bytes_max.
pub fn multiply(a: &Value, b: &Value, bytes_max: usize) -> Result<Value, Error> {
    let (repeated, times) = if b.is_integer() { (a, b) } else { (b, a) };
    let times = times.as_i64().map(|times| usize::try_from(times).unwrap_or(0));
    let fits = |each: usize| match times {
        None => Err(invalid(format!("cannot multiply {} and {}", a.kind(), b.kind()))),
        Some(times) if times.saturating_mul(each) > bytes_max => Err(invalid("the template builds too much")),
        Some(times) => Ok(times),
    };
    match repeated.kind() {
        ValueKind::String => {
            let text = repeated.as_str().unwrap_or_default();
            Ok(Value::from(text.repeat(fits(text.len())?)))
        }
        ValueKind::Seq => {
            let items: Vec<Value> = repeated.try_iter()?.collect();
            let times = fits(items.len().saturating_mul(std::mem::size_of::<Value>()))?;
            let items: Vec<Value> = std::iter::repeat_n(&items, times).flatten().cloned().collect();
            Ok(if repeated.is_tuple() { Value::from(Tuple::from(items)) } else { Value::from(items) })
        }
        _ => multiply_numbers(a, b),
    }
}

fn multiply_numbers(a: &Value, b: &Value) -> Result<Value, Error> {
    let refuse = |_| invalid(format!("cannot multiply {} and {}", a.kind(), b.kind()));
    if a.is_integer() && b.is_integer() {
        let (a, b) = (i128::try_from(a.clone()).map_err(refuse)?, i128::try_from(b.clone()).map_err(refuse)?);
        return a.checked_mul(b).map(Value::from).ok_or_else(|| invalid("the product is too large"));
    }
    Ok(Value::from(f64::try_from(a.clone()).map_err(refuse)? * f64::try_from(b.clone()).map_err(refuse)?))
}

/// value[start:stop:step] of a string, list or tuple.
pub fn slice(value: &Value, start: &Value, stop: &Value, step: &Value) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        let chars: Vec<char> = text.chars().collect();
        let picked = slice_indices(chars.len(), start, stop, step)?;
        return Ok(Value::from(picked.into_iter().map(|at| chars[at]).collect::<String>()));
    }
    if value.kind() != ValueKind::Seq {
        return Err(invalid(format!("{} cannot be sliced", value.kind())));
    }
    let items: Vec<Value> = value.try_iter()?.collect();
    let picked = slice_indices(items.len(), start, stop, step)?;
    let items: Vec<Value> = picked.into_iter().map(|at| items[at].clone()).collect();
    Ok(if value.is_tuple() { Value::from(Tuple::from(items)) } else { Value::from(items) })
}

/// Returns the indices range(*slice(start, stop, step).indices(len)).
fn slice_indices(len: usize, start: &Value, stop: &Value, step: &Value) -> Result<Vec<usize>, Error> {
    let bound = |value: &Value| match value.as_i64() {
        None if value.is_none() => Ok(None),
        None => Err(invalid("slice indices must be integers or none")),
        Some(at) => Ok(Some(at)),
    };
    let step = bound(step)?.unwrap_or(1);
    if step == 0 {
        return Err(invalid("slice step cannot be zero"));
    }
    let len = len as i64;
    // With a negative step, both bounds are one lower.
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clip = |at: i64| (if at < 0 { at.saturating_add(len) } else { at }).clamp(low, high);
    let start = bound(start)?.map_or(if step > 0 { low } else { high }, clip);
    let stop = bound(stop)?.map_or(if step > 0 { high } else { low }, clip);
    let mut picked = Vec::new();
    let mut at = start;
    while if step > 0 { at < stop } else { at > stop } {
        picked.push(at as usize);
        at = at.saturating_add(step);
    }
    Ok(picked)
}

/// datetime.fromtimestamp(now).strftime(format) in local time. now: seconds since the epoch.
pub fn strftime(format: &str, now: i64) -> Result<String, Error> {
    // The datetime has no zone and no microseconds; Python replaces these fields before it calls strftime(3).
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

/// Implements methods of Python's str that minijinja's compatibility layer lacks, and passes all others to
/// that layer.
pub fn call_method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    if let (Some(text), Some(argument)) = (value.as_str(), args.first().and_then(Value::as_str)) {
        let whole = || Value::from(text);
        let parts = |parts: [&str; 3]| Ok(Value::from(parts.map(Value::from).to_vec()));
        match method {
            "removeprefix" => return Ok(text.strip_prefix(argument).map_or_else(whole, Value::from)),
            "removesuffix" => return Ok(text.strip_suffix(argument).map_or_else(whole, Value::from)),
            "partition" => return parts(text.split_once(argument).map_or([text, "", ""], |(a, b)| [a, argument, b])),
            "rpartition" => return parts(text.rsplit_once(argument).map_or(["", "", text], |(a, b)| [a, argument, b])),
            _ => {}
        }
    }
    pycompat::unknown_method_callback(state, value, method, args)
}

/// Returns the size in bytes of text.replace(from, to).
pub fn replaced_bytes(text: &str, from: &str, to: &str) -> usize {
    let found = if from.is_empty() { text.chars().count() + 1 } else { text.matches(from).count() };
    text.len().saturating_add(found.saturating_mul(to.len()))
}

/// Returns an upper bound in bytes for the result of a method whose result may be much larger than its
/// arguments.
pub fn method_result_bytes(value: &Value, method: &str, args: &[Value]) -> usize {
    let text = |value: Option<&Value>| value.and_then(|value| value.as_str().map(String::from)).unwrap_or_default();
    match method {
        "replace" => replaced_bytes(&text(Some(value)), &text(args.first()), &text(args.get(1))),
        "join" => args.first().and_then(Value::len).unwrap_or(0).saturating_mul(text(Some(value)).len()),
        _ => 0,
    }
}
