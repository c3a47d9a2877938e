//! llguidance behind a pipe, called from Rust, for bench_engines.py: the protocol of xgrammar.cc beside this folder.

use std::io::{stdin, stdout, BufRead, Write};
use std::sync::Arc;
use std::time::Instant;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{JsonCompileOptions, Matcher, ParserFactory};
use serde_json::{json, Value};

fn compile(factory: &ParserFactory, schema: &str) -> anyhow::Result<Matcher> {
    let mut schema: Value = serde_json::from_str(schema)?;
    let options = JsonCompileOptions { whitespace_flexible: false, ..Default::default() };
    options.apply_to(&mut schema);
    Ok(Matcher::new(Ok(factory.create_parser(TopLevelGrammar::from_json_schema(schema))?)))
}

fn walk(fresh: &Matcher, path: &[u32], row: &mut [u32]) -> anyhow::Result<Value> {
    let mut matcher = fresh.clone();
    let (mut masks, mut accepts) = (Vec::new(), Vec::new());
    let us = |begin: Instant| begin.elapsed().as_nanos() as f64 / 1e3;
    for &token in path {
        let begin = Instant::now();
        let mask = matcher.compute_mask_or_eos()?;
        row.copy_from_slice(&mask.as_slice()[..row.len()]);
        masks.push(us(begin));
        if row[token as usize / 32] >> (token % 32) & 1 == 0 {
            break;
        }
        let begin = Instant::now();
        if !matcher.is_stopped() {
            matcher.consume_token(token)?; // it stops by itself where nothing but the end can follow
        }
        accepts.push(us(begin));
    }
    Ok(json!({"masks": masks, "accepts": accepts}))
}

fn run(factory: &ParserFactory, schema: &str, path: &[u32], row: &mut [u32]) -> anyhow::Result<Value> {
    let begin = Instant::now();
    let fresh = compile(factory, schema)?;
    let us = begin.elapsed().as_nanos() as f64 / 1e3;
    Ok(json!({"us": us, "walks": [walk(&fresh, path, row)?, walk(&fresh, path, row)?]}))
}

fn main() -> anyhow::Result<()> {
    let mut lines = stdin().lock().lines();
    let mut next = || lines.next().transpose();
    let count: usize = next()?.unwrap_or_default().parse()?;
    let mut words = Vec::new();
    for _ in 0..count {
        let hex = next()?.unwrap_or_default();
        words.push((0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16)).collect::<Result<Vec<u8>, _>>()?);
    }
    let end = count as u32 - 1;
    words[count - 1] = b"\xff</s>".to_vec(); // how it marks special tokens
    let env: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&TokRxInfo::new(count as u32, end), &words)));
    let mut factory = ParserFactory::new_simple(&env)?;
    factory.quiet();
    let mut row = vec![0u32; count.div_ceil(32)];
    while let Some(schema) = next()? {
        let path: Vec<u32> = next()?.unwrap_or_default().split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let answer = run(&factory, &schema, &path, &mut row).unwrap_or_else(|error| json!({"error": error.to_string()}));
        println!("{answer}");
        stdout().flush()?;
    }
    Ok(())
}
