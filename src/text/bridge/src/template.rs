//! Renders a chat template as transformers' `apply_chat_template`: Jinja with trim_blocks, lstrip_blocks
//! and loop controls, plus `tojson`, `strftime_now`, `raise_exception` and `{% generation %}`. Every render
//! has limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::machinery::{self, CompiledTemplate, TemplateConfig};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Error, ErrorKind};

use crate::budget::Budget;
use crate::bytecode::Program;
use crate::environment::{environment, RAISED};
use crate::{json, precheck, python, Outcome};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    source_bytes: usize,
    output_bytes: usize,
    depth: usize,
    /// fuel: number of instructions. built_bytes: bytes written, joined or repeated.
    fuel: u64,
    built_bytes: u64,
    /// Additions to these limits for each byte of the input.
    fuel_per_input_byte: u64,
    built_bytes_per_input_byte: u64,
}

pub struct Template {
    program: Program,
    special_tokens: BTreeMap<String, Value>,
    limits: Limits,
    /// `program` borrows from it, so it must be dropped after `program`.
    _source: Box<str>,
}

/// Input of one render as JSON texts; empty: null.
pub struct Conversation<'a> {
    pub messages: &'a str,
    pub tools: &'a str,
    pub documents: &'a str,
    pub kwargs: &'a str,
    pub add_generation_prompt: bool,
    /// The last message stays open, so that the model continues it.
    pub continue_final_message: bool,
    pub now: i64,
}

impl Template {
    pub fn open(source: &str, special_tokens: &str, limits: Limits) -> Outcome<Template> {
        if source.len() > limits.source_bytes {
            return Err(format!("{} bytes, the limit is {}", source.len(), limits.source_bytes));
        }
        let special_tokens = object("special tokens", special_tokens)?.into_iter().collect();
        let source = tolerate_generation_tags(source).into_boxed_str();
        // SAFETY: the text is on the heap, and neither moves nor changes until `program` is dropped.
        let borrowed: &'static str = unsafe { &*(&*source as *const str) };
        let config = TemplateConfig {
            syntax_config: SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().expect("valid"),
            default_auto_escape: Arc::new(|_| AutoEscape::None),
        };
        precheck::check(borrowed, &config.syntax_config)?;
        let program = on_deep_stack(source.len(), || {
            let compiled = CompiledTemplate::new("chat_template", borrowed, &config).map_err(|e| describe(&e))?;
            Ok(Program::new(&compiled))
        })?;
        Ok(Template { program, special_tokens, limits, _source: source })
    }

    pub fn render(&self, conversation: &Conversation) -> Outcome<String> {
        if conversation.continue_final_message && conversation.add_generation_prompt {
            return Err("continue_final_message and add_generation_prompt exclude each other".into());
        }
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
        if conversation.continue_final_message {
            text = cut_at_continuation(text)?;
        }
        if text.len() > self.limits.output_bytes {
            return Err(format!(
                "the rendered text has {} bytes, the limit is {}",
                text.len(),
                self.limits.output_bytes
            ));
        }
        Ok(text)
    }

    fn context(&self, conversation: &Conversation) -> Outcome<BTreeMap<String, Value>> {
        let mut context = self.special_tokens.clone();
        context.extend(object("chat_template_kwargs", conversation.kwargs)?);
        let now = conversation.now;
        let own: [(&str, Value); 5] = [
            ("messages", messages(conversation.messages, conversation.continue_final_message)?),
            ("tools", json::loads("tools", conversation.tools)?),
            ("documents", json::loads("documents", conversation.documents)?),
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

/// minijinja's compiler recurses once for each operator of a chain ("- - - 1", "a.b.c.d"), so the stack
/// must grow with the source. The memory is reserved, but rarely used.
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

/// Returns the members of a JSON object.
fn object(field: &str, json: &str) -> Outcome<Vec<(String, Value)>> {
    let value = json::loads(field, json)?;
    match value.kind() {
        ValueKind::None => Ok(Vec::new()),
        ValueKind::Map => Ok(pairs(&value)),
        kind => Err(format!("{field}: must be an object, not a {kind}")),
    }
}

fn pairs(map: &Value) -> Vec<(String, Value)> {
    let keys = map.try_iter().into_iter().flatten();
    keys.map(|key| (key.to_string(), map.get_item(&key).unwrap_or_default())).collect()
}

/// Adds a message's reasoning under all names that templates use for it, as transformers does.
fn messages(json: &str, continue_final: bool) -> Outcome<Value> {
    let messages = json::loads("messages", json)?;
    if messages.kind() != ValueKind::Seq {
        return Err(format!("messages: must be an array, not a {}", messages.kind()));
    }
    let mut aliased = Vec::new();
    for (at, message) in messages.try_iter().into_iter().flatten().enumerate() {
        if message.kind() != ValueKind::Map {
            return Err(format!("messages[{at}]: must be an object, not a {}", message.kind()));
        }
        aliased.push(alias_reasoning(message));
    }
    if continue_final {
        let last = aliased.pop().ok_or("continue_final_message: there is no message")?;
        aliased.push(mark_continuation(&last)?);
    }
    Ok(Value::from(aliased))
}

/// Added to the end of the message to continue; the rendered text is cut there. The space shows whether the
/// template trims the content.
const CONTINUATION: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// Adds the mark to the message's content, or to the last text part of the content.
fn mark_continuation(message: &Value) -> Outcome<Value> {
    let with = |map: &Value, key: &str, value: Value| {
        Value::from_pairs(pairs(map).into_iter().chain([(key.to_string(), value)]))
    };
    let marked = |text: &Value| text.as_str().map(|text| Value::from(format!("{text}{CONTINUATION}")));
    let content = message.get_attr("content").unwrap_or_default();
    if let Some(text) = marked(&content) {
        return Ok(with(message, "content", text));
    }
    let mut parts: Vec<Value> = content.try_iter().into_iter().flatten().collect();
    for part in parts.iter_mut().rev() {
        if let Some(text) = part.get_attr("text").ok().as_ref().and_then(marked) {
            *part = with(part, "text", text);
            return Ok(with(message, "content", Value::from(parts)));
        }
    }
    Err("continue_final_message: the last message has no text to continue".into())
}

fn cut_at_continuation(mut text: String) -> Outcome<String> {
    let found = text.rfind(CONTINUATION.trim_end());
    let at = found.ok_or("continue_final_message: the template does not write the last message out")?;
    let spaced = text[at..].starts_with(CONTINUATION);
    text.truncate(if spaced { at } else { text[..at].trim_end().len() });
    Ok(text)
}

fn alias_reasoning(message: Value) -> Value {
    let named = ["reasoning_content", "thinking", "reasoning"].map(|name| message.get_attr(name).unwrap_or_default());
    let Some(reasoning) = named.into_iter().find(|value| !value.is_none() && !value.is_undefined()) else {
        return message;
    };
    let thinking = message.get_attr("thinking").ok().filter(|value| !value.is_undefined());
    let mut all = vec![("thinking".to_string(), thinking.unwrap_or_else(|| reasoning.clone()))];
    all.extend(pairs(&message).into_iter().filter(|(name, _)| name != "thinking"));
    all.push(("reasoning_content".into(), reasoning));
    Value::from_pairs(all)
}

/// `{% generation %}` marks the assistant's text for training. A render treats it as a plain scope.
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

pub fn describe(error: &Error) -> String {
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
