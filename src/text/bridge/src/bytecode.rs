//! Rewrites the compiled instructions of a template before minijinja runs them. It adds calls where Python
//! behaves differently, or where one instruction can build more than its fuel covers.
//!
//!     a ~ b                            ->  CONCAT(a, b)            Python's str() of both
//!     a * b                            ->  MULTIPLY(a, b)          computes the size first
//!     a[b:c:d]                         ->  SLICE(a, b, c, d)       the slice of a list is a list, built at
//!     once
//!     for x in y                       ->  for x in ITERATE(y)     None is not iterable
//!     [a, b], x | f, f(x), a + b ..    ->  CHARGE(..)              charges the new value to the budget
//!     {% set ns.a = b %}               ->  .. = STORE(b)           a namespace must not contain itself
//!     template text                    ->  {{ "template text" }}   charges the text, too
//!
//! Templates cannot write the names of these functions.

use std::collections::BTreeMap;

use minijinja::machinery::{CompiledTemplate, Instruction, Instructions};
use minijinja::Value;

pub const CONCAT: &str = "~";
pub const MULTIPLY: &str = "*";
pub const SLICE: &str = "[:]";
pub const ITERATE: &str = "for ..";
pub const CHARGE: &str = "charge ..";
pub const STORE: &str = "ns. ..";

pub struct Program {
    pub main: Instructions<'static>,
    pub blocks: BTreeMap<&'static str, Instructions<'static>>,
}

impl Program {
    pub fn new(compiled: &CompiledTemplate<'static>) -> Program {
        Program {
            main: rewrite(&compiled.instructions),
            blocks: compiled.blocks.iter().map(|(name, block)| (*name, rewrite(block))).collect(),
        }
    }
}

fn rewrite(old: &Instructions<'static>) -> Instructions<'static> {
    let all: Vec<&Instruction<'static>> = (0..).map_while(|at| old.get(at)).collect();
    let mut moved_to = Vec::with_capacity(all.len() + 1);
    let mut next = 0;
    for instruction in &all {
        moved_to.push(next);
        next += expand(instruction).len() as u32;
    }
    moved_to.push(next);

    let mut new = Instructions::new(old.name(), old.source());
    for (at, instruction) in all.into_iter().enumerate() {
        for mut part in expand(instruction) {
            if let Some(target) = jump_target(&mut part) {
                *target = moved_to[*target as usize];
            }
            match old.get_line(at as u32) {
                Some(line) => new.add_with_line(part, line.min(usize::from(u16::MAX)) as u16),
                None => new.add(part),
            };
        }
    }
    new
}

fn expand(instruction: &Instruction<'static>) -> Vec<Instruction<'static>> {
    use Instruction::*;
    let call = |name, arguments| CallFunction(name, Some(arguments));
    match instruction {
        EmitRaw(text) => vec![LoadConst(Value::from(*text)), Emit],
        StringConcat => vec![call(CONCAT, 2)],
        Mul => vec![call(MULTIPLY, 2), call(CHARGE, 1)],
        Slice => vec![call(SLICE, 4), call(CHARGE, 1)],
        PushLoop(_) => vec![call(ITERATE, 1), instruction.clone()],
        // On the stack, the value is below the namespace.
        SetAttr(_) => vec![Swap, call(STORE, 1), Swap, instruction.clone()],
        Add | Rem | BuildList(_) | BuildMap(_) | BuildTuple(_) | ApplyFilter(..) | CallFunction(..)
        | CallMethod(..) | CallObject(..) => {
            vec![instruction.clone(), call(CHARGE, 1)]
        }
        _ => vec![instruction.clone()],
    }
}

fn jump_target<'a>(instruction: &'a mut Instruction<'static>) -> Option<&'a mut u32> {
    use Instruction::*;
    match instruction {
        Iterate(target)
        | Jump(target)
        | JumpIfFalse(target)
        | JumpIfFalseOrPop(target)
        | JumpIfTrueOrPop(target)
        | BuildMacro(_, target, _) => Some(target),
        _ => None,
    }
}
