//! A chat template as transformers' `apply_chat_template` renders it: Jinja with trim_blocks, lstrip_blocks and loop
//! controls, plus `tojson`, `strftime_now`, `raise_exception` and `{% generation %}`, under limits.

use std::collections::BTreeMap;
use std::io::{self, Write};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use crate::{python, Outcome};

const NAME: &str = "chat_template";

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    source_bytes: usize,
    output_bytes: usize,
    depth: usize,
    /// Instructions for any render, and more for each byte of input.
    fuel_base: u64,
    fuel_per_input_byte: u64,
}

pub struct Template {
    environment: Environment<'static>,
    special_tokens: BTreeMap<String, Value>,
    limits: Limits,
}

/// What one render is about, as JSON texts; an empty one is null.
pub struct Conversation<'a> {
    pub messages: &'a str,
    pub tools: &'a str,
    pub documents: &'a str,
    pub kwargs: &'a str,
    pub add_generation_prompt: bool,
    pub now: i64,
}

impl Template {
    pub fn open(source: &str, special_tokens: &str, limits: Limits) -> Outcome<Template> {
        if source.len() > limits.source_bytes {
            return Err(format!("{} bytes, the limit is {}", source.len(), limits.source_bytes));
        }
        let special_tokens = parse("special tokens", special_tokens)?;
        let mut environment = environment(&limits);
        environment.add_template_owned(NAME, tolerate_generation_tags(source)).map_err(|e| describe(&e))?;
        Ok(Template { environment, special_tokens, limits })
    }

    pub fn render(&self, conversation: &Conversation) -> Outcome<String> {
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(self.limits.fuel_base + self.limits.fuel_per_input_byte * conversation.bytes()));
        let template = environment.get_template(NAME).map_err(|e| describe(&e))?;
        let mut output = BoundedText { bytes: Vec::new(), limit: self.limits.output_bytes };
        let context = self.context(conversation)?;
        template.render_captured_to(Value::from(context), &mut output).map_err(|e| describe(&e))?;
        String::from_utf8(output.bytes).map_err(|e| e.to_string())
    }

    fn context(&self, conversation: &Conversation) -> Outcome<BTreeMap<String, Value>> {
        let mut context = self.special_tokens.clone();
        let kwargs: Option<BTreeMap<String, Value>> = parse("chat_template_kwargs", conversation.kwargs)?;
        context.extend(kwargs.unwrap_or_default());
        let now = conversation.now;
        let own: [(&str, Value); 5] = [
            ("messages", messages(conversation.messages)?),
            ("tools", parse("tools", conversation.tools)?),
            ("documents", parse("documents", conversation.documents)?),
            ("add_generation_prompt", conversation.add_generation_prompt.into()),
            ("strftime_now", Value::from_function(move |format: &str| python::strftime(format, now))),
        ];
        for (name, value) in own {
            if context.insert(name.into(), value).is_some() {
                return Err(format!("chat_template_kwargs: {name:?} is reserved"));
            }
        }
        Ok(context)
    }
}

impl Conversation<'_> {
    fn bytes(&self) -> u64 {
        (self.messages.len() + self.tools.len() + self.documents.len() + self.kwargs.len()) as u64
    }
}

fn parse<T: DeserializeOwned>(field: &str, json: &str) -> Outcome<T> {
    let json = if json.is_empty() { "null" } else { json };
    serde_json::from_str(json).map_err(|e| format!("{field}: invalid JSON: {e}"))
}

/// The messages, with a message's reasoning under each name that templates read it by, as transformers has it.
fn messages(json: &str) -> Outcome<Value> {
    let mut messages: Vec<Map<String, Json>> = parse("messages", json)?;
    for message in &mut messages {
        let named = ["reasoning_content", "thinking", "reasoning"].map(|name| message.get(name));
        let Some(reasoning) = named.into_iter().flatten().find(|value| !value.is_null()).cloned() else { continue };
        message.insert("reasoning_content".into(), reasoning.clone());
        if !message.contains_key("thinking") {
            message.shift_insert(0, "thinking".into(), reasoning);
        }
    }
    serde_json::to_value(messages).and_then(serde_json::from_value).map_err(|e| format!("messages: {e}"))
}

fn environment(limits: &Limits) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().expect("valid syntax"));
    environment.set_recursion_limit(limits.depth);
    environment.set_unknown_method_callback(python::call_method);
    environment.set_formatter(|out, _, value| Ok(out.write_str(&python::str(value))?));
    environment.remove_global("debug");
    environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{message}")))
    });
    environment.add_filter("tojson", tojson);
    environment.add_filter("string", |value: Value| python::str(&value));
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map)
    });
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment
}

/// transformers' tojson: json.dumps(x, ensure_ascii, indent, separators, sort_keys), without HTML escapes.
fn tojson(
    value: &Value, ensure_ascii: Option<bool>, indent: Option<Value>, separators: Option<Value>, named: Kwargs,
) -> Result<String, Error> {
    let separators = match separators {
        None => named.get::<Option<Value>>("separators")?,
        given => given,
    };
    let style = python::JsonStyle::new(
        ensure_ascii.or(named.get("ensure_ascii")?).unwrap_or(false),
        indent.or(named.get("indent")?).filter(|indent| !indent.is_none()),
        separators.filter(|separators| !separators.is_none()),
        named.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    )?;
    named.assert_all_used()?;
    python::json_dumps(value, &style)
}

/// `{% generation %}` marks the assistant's text for training masks; for rendering it is only a scope.
fn tolerate_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(tag) = rest.find("{%") {
        let inside = tag + 2;
        let sign = usize::from(rest[inside..].starts_with(['-', '+']));
        let word_at = rest.len() - rest[inside + sign..].trim_start().len();
        let word_end = word_at + rest[word_at..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(0);
        out.push_str(&rest[..word_at]);
        out.push_str(match &rest[word_at..word_end] {
            "generation" => "with",
            "endgeneration" => "endwith",
            word => word,
        });
        rest = &rest[word_end..];
    }
    out.push_str(rest);
    out
}

/// Marks an error that the template itself raised: its message is passed on bare.
const RAISED: &str = "\u{1}";

fn describe(error: &Error) -> String {
    let detail = error.detail().unwrap_or_default();
    if let Some(message) = detail.strip_prefix(RAISED) {
        return message.to_string();
    }
    let text = match error.kind() {
        ErrorKind::OutOfFuel => "the template runs too long: out of fuel".to_string(),
        ErrorKind::WriteFailure => "the rendered text is too long".to_string(),
        kind if detail.is_empty() => kind.to_string(),
        kind => format!("{kind}: {detail}"),
    };
    match error.line() {
        Some(line) => format!("{text} (template line {line})"),
        None => text,
    }
}

/// A buffer that refuses to grow past its limit.
struct BoundedText {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::Error::other("output limit"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
