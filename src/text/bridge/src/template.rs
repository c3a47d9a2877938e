//! A chat template as transformers' `apply_chat_template` renders it: Jinja with trim_blocks, lstrip_blocks and loop
//! controls, plus `tojson`, `strftime_now`, `raise_exception` and `{% generation %}`, under limits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use minijinja::machinery::{self, CompiledTemplate, TemplateConfig, Token};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, StringInput, Value, ValueKind};
use minijinja::{filters, AutoEscape, Environment, Error, ErrorKind, State};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use crate::bytecode::{self, Program};
use crate::json::{self, JsonStyle};
use crate::{python, Outcome};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    source_bytes: usize,
    output_bytes: usize,
    depth: usize,
    /// Instructions, and bytes built (written, joined, repeated): so many for any render ..
    fuel: u64,
    built_bytes: u64,
    /// .. and so many more for each byte of input.
    fuel_per_input_byte: u64,
    built_bytes_per_input_byte: u64,
}

pub struct Template {
    program: Program,
    special_tokens: BTreeMap<String, Value>,
    limits: Limits,
    /// What `program` borrows from: dropped after it.
    _source: Box<str>,
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
        let source = tolerate_generation_tags(source).into_boxed_str();
        // SAFETY: the text lives on the heap, unmoved and unchanged, until `program` is gone.
        let borrowed: &'static str = unsafe { &*(&*source as *const str) };
        let config = TemplateConfig {
            syntax_config: SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().expect("valid"),
            default_auto_escape: Arc::new(|_| AutoEscape::None),
        };
        refuse_long_unary_chains(borrowed, &config.syntax_config)?;
        let program = on_deep_stack(source.len(), || {
            let compiled = CompiledTemplate::new("chat_template", borrowed, &config).map_err(|e| describe(&e))?;
            Ok(Program::new(&compiled))
        })?;
        Ok(Template { program, special_tokens, limits, _source: source })
    }

    pub fn render(&self, conversation: &Conversation) -> Outcome<String> {
        let context = Value::from(self.context(conversation)?);
        let input = conversation.bytes();
        let budget = Budget::new(self.limits.built_bytes + self.limits.built_bytes_per_input_byte * input);
        let mut environment = environment(&Arc::new(budget));
        environment.set_fuel(Some(self.limits.fuel + self.limits.fuel_per_input_byte * input));
        environment.set_recursion_limit(self.limits.depth);
        let mut text = String::new();
        let mut output = machinery::make_string_output(&mut text);
        let (main, blocks) = (&self.program.main, &self.program.blocks);
        machinery::eval(&environment, main, context, blocks, &mut output, AutoEscape::None)
            .map_err(|e| describe(&e))?;
        if text.len() > self.limits.output_bytes {
            return Err(format!("the rendered text has {} bytes, the limit is {}", text.len(), self.limits.output_bytes));
        }
        Ok(text)
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

/// minijinja's compiler takes quadratic time for "- - - - 1".
fn refuse_long_unary_chains(source: &str, syntax: &SyntaxConfig) -> Outcome<()> {
    const UNARY_CHAIN_MAX: usize = 64;
    let mut chain = 0;
    for token in machinery::tokenize(source, false, syntax.clone()) {
        let (token, span) = token.map_err(|e| describe(&e))?;
        let unary = matches!(token, Token::Minus | Token::Plus | Token::Ident("not"));
        chain = if unary { chain + 1 } else { 0 };
        if chain > UNARY_CHAIN_MAX {
            return Err(format!("more than {UNARY_CHAIN_MAX} signs in a row (template line {})", span.start_line));
        }
    }
    Ok(())
}

/// minijinja's compiler recurses once for each operator of a chain ("- - - 1", "a.b.c.d"), without a limit of its own: its
/// stack must be as deep as the source is long. It is reserved, not used.
fn on_deep_stack<T: Send>(source_bytes: usize, body: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    const STACK_PER_SOURCE_BYTE: usize = 2048;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size((1 << 20) + source_bytes * STACK_PER_SOURCE_BYTE);
        let running = thread.spawn_scoped(scope, body).map_err(|e| format!("no stack to compile it on: {e}"))?;
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
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

/// How deep a template may nest the lists and dicts it builds.
const NESTING_MAX: usize = 100 + 128; // 128: that of serde_json, for what came in

/// How many bytes a render may still build.
#[derive(Debug)]
struct Budget(AtomicU64);

impl Budget {
    fn new(bytes: u64) -> Budget {
        Budget(AtomicU64::new(bytes))
    }

    fn charge(&self, bytes: usize) -> Result<(), Error> {
        let left = self.0.load(Ordering::Relaxed);
        let after = left.checked_sub(bytes as u64);
        self.0.store(after.unwrap_or(0), Ordering::Relaxed);
        after.map(|_| ()).ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "the template builds too much"))
    }

    fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }

    /// Charges for a value that was just built: for all its parts, as often as they occur in it, so that no value is
    /// larger to walk or to print than the budget. What would be computed lazily is computed now.
    fn charge_value(&self, value: Value) -> Result<Value, Error> {
        if value.kind() == ValueKind::Iterable {
            let mut items = Vec::new();
            for item in value.try_iter()? {
                self.charge_parts(&item, 0)?;
                items.push(item);
            }
            return Ok(Value::from(items));
        }
        self.charge_parts(&value, 0)?;
        Ok(value)
    }

    fn charge_parts(&self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > NESTING_MAX {
            return Err(Error::new(ErrorKind::InvalidOperation, "the template nests lists too deep"));
        }
        self.charge(std::mem::size_of::<Value>() + value.as_str().map_or(0, str::len))?;
        match value.kind() {
            ValueKind::Seq => value.try_iter()?.try_for_each(|item| self.charge_parts(&item, depth + 1)),
            ValueKind::Map => value.try_iter()?.try_for_each(|key| {
                self.charge_parts(&key, depth + 1)?;
                self.charge_parts(&value.get_item(&key)?, depth + 1)
            }),
            _ => Ok(()),
        }
    }
}

fn environment(budget: &Arc<Budget>) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.remove_global("debug");
    for rare in ["batch", "slice", "format"] {
        environment.remove_filter(rare);
    }
    let shared = budget.clone();
    environment.set_formatter(move |out, _, value| {
        let text = python::str(value);
        shared.charge(text.len())?;
        Ok(out.write_str(&text)?)
    });
    let shared = budget.clone();
    environment.set_unknown_method_callback(move |state, value, method, args| {
        shared.charge(python::method_result_bytes(value, method, args))?;
        python::call_method(state, value, method, args)
    });
    let shared = budget.clone();
    environment.add_function(bytecode::CHARGE, move |value: Value| shared.charge_value(value));
    environment.add_function(bytecode::SLICE, python::slice);
    let shared = budget.clone();
    environment.add_function(bytecode::CONCAT, move |a: &Value, b: &Value| {
        let text = python::str(a) + &python::str(b);
        shared.charge(text.len()).map(|_| text)
    });
    environment.add_function(bytecode::ITERATE, |value: Value| match value.kind() {
        ValueKind::None => Err(Error::new(ErrorKind::InvalidOperation, "none is not iterable")),
        _ => Ok(value),
    });
    environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{message}")))
    });
    let shared = budget.clone();
    environment.add_filter(
        "tojson",
        move |value: &Value, ascii: Option<bool>, indent: Option<Value>, separators: Option<Value>, named: Kwargs| {
            tojson(value, ascii, indent, separators, named, shared.left())
        },
    );
    environment.add_filter("string", |value: &Value| python::str(value));
    let shared = budget.clone();
    environment.add_filter("replace", move |state: &mut State, value: StringInput, from: StringInput, to: StringInput| {
        shared.charge(python::replaced_bytes(value.as_str(), from.as_str(), to.as_str()))?;
        filters::replace(state, value, from, to)
    });
    add_bounded_joins(&mut environment, budget);
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map)
    });
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment
}

/// join and indent put one text between or before many.
fn add_bounded_joins(environment: &mut Environment<'static>, budget: &Arc<Budget>) {
    let shared = budget.clone();
    environment.add_filter(
        "join",
        move |state: &mut State, value: &Value, joiner: Option<StringInput>, attribute: Option<&str>, named: Kwargs| {
            let between = joiner.as_ref().map_or(0, |joiner| joiner.as_str().len());
            shared.charge(value.len().unwrap_or(0).saturating_mul(between))?;
            filters::join(state, value, joiner, attribute, named)
        },
    );
    let shared = budget.clone();
    environment.add_filter(
        "indent",
        move |value: StringInput, width: Option<usize>, first: Option<bool>, blank: Option<bool>, named: Kwargs| {
            let width_max = width.or(named.peek::<Option<usize>>("width").ok().flatten()).unwrap_or(4);
            shared.charge(value.as_str().matches('\n').count().saturating_add(1).saturating_mul(width_max))?;
            filters::indent(value, width, first, blank, named)
        },
    );
}

/// transformers' tojson: json.dumps(x, ensure_ascii, indent, separators, sort_keys), without HTML escapes.
fn tojson(
    value: &Value, ensure_ascii: Option<bool>, indent: Option<Value>, separators: Option<Value>, named: Kwargs,
    bytes_max: usize,
) -> Result<String, Error> {
    let separators = match separators {
        None => named.get::<Option<Value>>("separators")?,
        given => given,
    };
    let style = JsonStyle::new(
        ensure_ascii.or(named.get("ensure_ascii")?).unwrap_or(false),
        indent.or(named.get("indent")?).filter(|indent| !indent.is_none()),
        separators.filter(|separators| !separators.is_none()),
        named.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    )?;
    named.assert_all_used()?;
    json::dumps(value, &style, bytes_max)
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
        kind if detail.is_empty() => kind.to_string(),
        kind => format!("{kind}: {detail}"),
    };
    match error.line() {
        Some(line) => format!("{text} (template line {line})"),
        None => text,
    }
}
