//! Rejects templates that minijinja's compiler would process without a limit: chains such as "- - - - 1"
//! take quadratic time, and it computes constants such as "'x' * 100000000".

use minijinja::machinery::{self, Token};
use minijinja::syntax::SyntaxConfig;

use crate::template::describe;
use crate::Outcome;

const SIGNS_MAX: usize = 64;
const CONSTANT_BYTES_MAX: u64 = 16 << 20;

pub fn check(source: &str, syntax: &SyntaxConfig) -> Outcome<()> {
    let mut signs = 0;
    let mut tag = Tag::default();
    let mut constant_bytes = 0u64;
    for token in machinery::tokenize(source, false, syntax.clone()) {
        let (token, span) = token.map_err(|e| describe(&e))?;
        signs = if matches!(token, Token::Minus | Token::Plus | Token::Ident("not")) { signs + 1 } else { 0 };
        if signs > SIGNS_MAX {
            return Err(format!("more than {SIGNS_MAX} signs in a row (template line {})", span.start_line));
        }
        if matches!(token, Token::VariableStart | Token::BlockStart) {
            tag = Tag::default();
        }
        tag.add(&token);
        if matches!(token, Token::VariableEnd | Token::BlockEnd) {
            constant_bytes = constant_bytes.saturating_add(tag.constant_bytes());
        }
        if constant_bytes > CONSTANT_BYTES_MAX {
            return Err(format!("constants are repeated too often (template line {})", span.start_line));
        }
    }
    Ok(())
}

/// Constants in one tag, to limit the size of their products.
#[derive(Default)]
struct Tag {
    multiplies: bool,
    text_bytes: u64,
    items: u64,
    factor: u64,
}

impl Tag {
    fn add(&mut self, token: &Token) {
        match token {
            Token::Mul => self.multiplies = true,
            Token::Str(text) => self.text_bytes += text.len() as u64,
            Token::String(text) => self.text_bytes += text.len() as u64,
            Token::BracketOpen | Token::Comma => self.items += 1,
            Token::Int(number) => self.factor = self.factor.max(1).saturating_mul((*number).max(1)),
            Token::Int128(_) => self.factor = u64::MAX,
            _ => {}
        }
    }

    fn constant_bytes(&self) -> u64 {
        let each = self.text_bytes + self.items * std::mem::size_of::<minijinja::Value>() as u64;
        if self.multiplies {
            self.factor.saturating_mul(each)
        } else {
            0
        }
    }
}
