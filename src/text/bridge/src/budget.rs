//! Limits the bytes that a render may build. Fuel limits its instructions.

use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::value::{Value, ValueKind};
use minijinja::Error;

use crate::python::invalid;

/// Maximum nesting of lists and dicts in a template.
const NESTING_MAX: usize = 100 + 200; // 200: jiter's limit for what comes in

/// Bytes that count for each value in addition to its text, for its memory and the time to visit it.
const PART_BYTES: usize = 64;

/// The bytes that a render may still build.
#[derive(Debug)]
pub struct Budget(AtomicU64);

impl Budget {
    pub fn new(bytes: u64) -> Budget {
        Budget(AtomicU64::new(bytes))
    }

    pub fn charge(&self, bytes: usize) -> Result<(), Error> {
        let left = self.0.load(Ordering::Relaxed);
        let after = left.checked_sub(bytes as u64);
        self.0.store(after.unwrap_or(0), Ordering::Relaxed);
        after.map(|_| ()).ok_or_else(|| invalid("the template builds too much"))
    }

    pub fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }

    /// Charges for a new value and all its parts. A part that occurs several times counts as often, so
    /// visiting or printing a value never exceeds the budget. Evaluates lazy values.
    pub fn charge_value(&self, value: Value) -> Result<Value, Error> {
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
            return Err(invalid("the template nests lists too deep"));
        }
        self.charge(PART_BYTES + value.as_str().map_or(0, str::len))?;
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
