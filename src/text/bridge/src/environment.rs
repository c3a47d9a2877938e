//! Functions, filters and tests of chat templates: those of minijinja, changed to behave like jinja2 and
//! transformers. Each one charges for the values that it builds.

use std::sync::Arc;

use minijinja::value::{Kwargs, StringInput, Value, ValueKind};
use minijinja::{filters, Environment, Error, State};

use crate::budget::Budget;
use crate::bytecode;
use crate::json::{self, JsonStyle};
use crate::python::{self, invalid};

/// Marks an error that the template itself raised. Its message is returned unchanged.
pub const RAISED: &str = "\u{1}";

pub fn environment(budget: &Arc<Budget>) -> Environment<'static> {
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
    let shared = budget.clone();
    environment.add_function(bytecode::STORE, move |value: Value| {
        let value = shared.charge_value(value)?;
        refuse_references(&value).map(|_| value)
    });
    let shared = budget.clone();
    environment.add_function(bytecode::MULTIPLY, move |a: &Value, b: &Value| python::multiply(a, b, shared.left()));
    environment.add_function(bytecode::SLICE, python::slice);
    let shared = budget.clone();
    environment.add_function(bytecode::CONCAT, move |a: &Value, b: &Value| {
        let text = python::str(a) + &python::str(b);
        shared.charge(text.len()).map(|_| text)
    });
    environment.add_function(bytecode::ITERATE, |value: Value| match value.kind() {
        ValueKind::None => Err(invalid("none is not iterable")),
        _ => Ok(value),
    });
    environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        Err(invalid(format!("{RAISED}{message}")))
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
    environment.add_filter(
        "replace",
        move |state: &mut State, value: StringInput, from: StringInput, to: StringInput| {
            shared.charge(python::replaced_bytes(value.as_str(), from.as_str(), to.as_str()))?;
            filters::replace(state, value, from, to)
        },
    );
    add_bounded_joins(&mut environment, budget);
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map)
    });
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment
}

/// Values are reference-counted, so a namespace that contains itself, through a list or a macro, would
/// never be freed.
fn refuse_references(value: &Value) -> Result<(), Error> {
    let Some(object) = value.as_object() else { return Ok(()) };
    let holds_references = ["::Namespace", "::Macro"].iter().any(|name| object.type_name().ends_with(name));
    if holds_references || value.kind() == ValueKind::Plain {
        return Err(invalid("a namespace can only hold data"));
    }
    match value.kind() {
        ValueKind::Seq => value.try_iter()?.try_for_each(|item| refuse_references(&item)),
        ValueKind::Map => value.try_iter()?.try_for_each(|key| refuse_references(&value.get_item(&key)?)),
        _ => Ok(()),
    }
}

/// join and indent may insert a text many times.
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

/// transformers' tojson: json.dumps(x, ensure_ascii, indent, separators, sort_keys) without HTML escapes.
fn tojson(
    value: &Value,
    ensure_ascii: Option<bool>,
    indent: Option<Value>,
    separators: Option<Value>,
    named: Kwargs,
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
