//! Applies tokenizer_config.json to a tokenizer.json as transformers 4.57 and 5.24 do.

use std::collections::HashSet;

use serde_json::{json, Value as Json};
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Tokenizer};

use crate::tokenizer::text;
use crate::Outcome;

/// config: tokenizer_config.json, completed with the fields of the files beside it (tokenizer_config.h) and
/// of its class (tokenizer_class.h).
pub fn apply(inner: &mut Tokenizer, config: &Json) -> Outcome<()> {
    set_lowercase(inner, config)?;
    set_prefix_space(inner, config)?;
    add_tokens(inner, config)?;
    inner.set_encode_special_tokens(config["split_special_tokens"] == true);
    frame(inner, config)
}

/// Roles of special tokens, in the order in which transformers adds the tokens.
const ROLES: [&str; 7] = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// A token is a string or an object with `content`.
fn content_of(token: &Json) -> Option<&str> {
    token.as_str().or(token["content"].as_str()).filter(|content| !content.is_empty())
}

/// Reads a token as transformers' AddedToken does. A token with a role is special.
fn added_token(token: &Json, has_role: bool) -> Option<AddedToken> {
    let flag = |name: &str, usual: bool| token[name].as_bool().unwrap_or(usual);
    let special = has_role || flag("special", false);
    let added = AddedToken::from(content_of(token)?, special);
    let normalized = flag("normalized", added.normalized);
    Some(
        added
            .normalized(normalized)
            .single_word(flag("single_word", false))
            .lstrip(flag("lstrip", false))
            .rstrip(flag("rstrip", false)),
    )
}

/// Returns the special tokens that the config names: first those of ROLES, then other roles, then lists.
fn named_tokens(config: &Json) -> Vec<&Json> {
    let other_role = |name: &&String| name.ends_with("_token") && !ROLES.contains(&name.as_str());
    let others = config.as_object().into_iter().flatten().filter(|(name, _)| other_role(name)).map(|(_, token)| token);
    let listed = ["additional_special_tokens", "extra_special_tokens"].map(|name| match &config[name] {
        Json::Array(tokens) => tokens.iter().collect(),
        Json::Object(tokens) => tokens.values().collect(),
        _ => Vec::new(),
    });
    ROLES.iter().map(|role| &config[*role]).chain(others).chain(listed.into_iter().flatten()).collect()
}

/// Adds tokens as transformers' PreTrainedTokenizerFast does. First come the tokens of added_tokens_decoder
/// in the order of their ids; their properties override those in tokenizer.json. Then come special tokens
/// that are only named. A token of the vocabulary keeps its id; others get the next free id.
fn add_tokens(inner: &mut Tokenizer, config: &Json) -> Outcome<()> {
    let named = named_tokens(config);
    let with_role: HashSet<&str> = named.iter().filter_map(|role| content_of(role)).collect();
    let has_role = |token: &Json| content_of(token).is_some_and(|content| with_role.contains(content));
    let mut decoder = Vec::new();
    for (id, token) in config["added_tokens_decoder"].as_object().into_iter().flatten() {
        let id: u32 = id.parse().map_err(|_| format!("added_tokens_decoder: {id:?} is not an id"))?;
        if token["content"] == "" {
            continue; // `tokenizers` ignores it
        }
        let added = added_token(token, has_role(token));
        decoder.push((id, added.ok_or_else(|| format!("added_tokens_decoder: {id} has no content"))?));
    }
    decoder.sort_by_key(|(id, _)| *id);
    inner.add_tokens(decoder.into_iter().map(|(_, token)| token)).map_err(text)?;
    let known = inner.get_added_vocabulary().get_vocab().clone();
    let new = |token: &AddedToken| !known.contains_key(&token.content);
    inner.add_tokens(named.iter().filter_map(|token| added_token(token, true)).filter(new)).map_err(text)?;
    Ok(())
}

/// If the config has do_lower_case, it decides about upper case, accents and Chinese characters.
fn set_lowercase(inner: &mut Tokenizer, config: &Json) -> Outcome<()> {
    let Some(lowercase) = config["do_lower_case"].as_bool() else { return Ok(()) };
    let normalizer = inner.get_normalizer().map(serde_json::to_value).transpose().map_err(text)?;
    let Some(mut normalizer) = normalizer.filter(|one| one["type"] == "BertNormalizer") else { return Ok(()) };
    normalizer["lowercase"] = json!(lowercase);
    normalizer["handle_chinese_chars"] = config["tokenize_chinese_chars"].clone();
    normalizer["strip_accents"] = json!(config["strip_accents"].as_bool());
    let normalizer: NormalizerWrapper = serde_json::from_value(normalizer).map_err(text)?;
    inner.with_normalizer(Some(normalizer)).map_err(text)?;
    Ok(())
}

/// If the config has add_prefix_space, it decides whether a space is added before a text.
fn set_prefix_space(inner: &mut Tokenizer, config: &Json) -> Outcome<()> {
    let Some(space) = config["add_prefix_space"].as_bool() else { return Ok(()) };
    let splitter = inner.get_pre_tokenizer().map(serde_json::to_value).transpose().map_err(text)?;
    let Some(mut splitter) = splitter.filter(|one| one["type"] == "ByteLevel") else { return Ok(()) };
    splitter["add_prefix_space"] = json!(space);
    let splitter: PreTokenizerWrapper = serde_json::from_value(splitter).map_err(text)?;
    inner.with_pre_tokenizer(Some(splitter));
    Ok(())
}

/// If the config has add_bos_token and add_eos_token, they replace the post-processor.
fn frame(inner: &mut Tokenizer, config: &Json) -> Outcome<()> {
    let flag = |name: &str| config[name].as_bool();
    let (Some(add_bos), Some(add_eos)) = (flag("add_bos_token"), flag("add_eos_token")) else { return Ok(()) };
    let (mut before, mut after, mut special) = (Vec::new(), Vec::new(), serde_json::Map::new());
    let parts = [(&mut before, "bos_token", add_bos), (&mut after, "eos_token", add_eos)];
    for (part, field, added) in parts {
        let Some(token) = content_of(&config[field]).filter(|_| added) else { continue };
        let id = inner.token_to_id(token).ok_or_else(|| format!("{field} {token:?} is not in the vocabulary"))?;
        part.push(token.to_string());
        special.insert(token.to_string(), json!({"id": token, "ids": [id], "tokens": [token]}));
    }
    let framed = |text: &str, kind: u32| {
        let special = |token: &String| json!({"SpecialToken": {"id": token, "type_id": kind}});
        let text = json!({"Sequence": {"id": text, "type_id": kind}});
        before.iter().map(special).chain([text]).chain(after.iter().map(special)).collect::<Vec<Json>>()
    };
    let (single, pair) = (framed("A", 0), [framed("A", 0), framed("B", 1)].concat());
    // The library's builder would read a colon in a token as the start of a type.
    let template = json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special});
    let template: TemplateProcessing = serde_json::from_value(template).map_err(text)?;
    inner.with_post_processor(Some(template));
    Ok(())
}
