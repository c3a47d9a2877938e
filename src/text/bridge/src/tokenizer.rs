//! Runs a tokenizer.json with `tokenizers`. Also finds what `tokenizers` does not report: the bytes of a
//! token, and which tokens must be decoded together.

use serde_json::Value as Json;
use tokenizers::models::bpe::BPE;
use tokenizers::utils::parallelism::set_parallelism;
use tokenizers::{
    truncate_encodings, DecoderWrapper, Encoding, NormalizerWrapper, PostProcessor, PostProcessorWrapper,
    PreTokenizerWrapper, TokenizerImpl, TruncationParams,
};

use crate::plamo::Segmenter;
use crate::{config, Outcome};

/// Which tokens a streaming decoder must decode together, so that the text equals that of all ids.
#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
pub enum Grouping {
    /// The text of a token depends only on the token, and on whether it is the first one.
    Token = 0,
    /// Tokens are bytes; a character may consist of several tokens.
    Bytes = 1,
    /// Byte fallback: a run of byte tokens is decoded together, other tokens alone.
    ByteRuns = 2,
    /// Only the whole sequence can be decoded.
    Whole = 3,
}

type OfBpe = TokenizerImpl<BPE, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// Reads tokenizer.json. `tokenizers::Tokenizer` reads the vocabulary of any type of model into a tree of JSON
/// values first, so BPE, the most common type, is read directly.
fn read(json: &[u8]) -> Outcome<tokenizers::Tokenizer> {
    match serde_json::from_slice::<OfBpe>(json) {
        Ok(of_bpe) => Ok(of_bpe.into()),
        Err(_) => tokenizers::Tokenizer::from_bytes(json).map_err(text),
    }
}

pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// Splits texts in place of the model in `inner`.
    plamo: Option<Segmenter>,
    grouping: Grouping,
    /// A token that decodes to one ASCII letter next to any token. Tokens after it are decoded as in the
    /// middle of a text.
    anchor: Option<u32>,
    vocab_size: u32,
}

impl Tokenizer {
    pub fn open(json: &[u8], config: &[u8]) -> Outcome<Tokenizer> {
        set_parallelism(false);
        let mut inner = read(json)?;
        inner.with_padding(None);
        inner.with_truncation(None).map_err(text)?;
        let mut plamo = None;
        if !config.is_empty() {
            let config: Json = serde_json::from_slice(config).map_err(|e| format!("tokenizer_config.json: {e}"))?;
            config::apply(&mut inner, &config)?;
            plamo = Segmenter::of(&inner, &config)?;
        }
        let decoder = inner.get_decoder().map(serde_json::to_value).transpose().map_err(text)?;
        let vocab_size = inner.get_vocab(true).into_values().max().map_or(0, |highest| highest + 1);
        let mut tokenizer = Tokenizer { inner, plamo, grouping: grouping_of(&decoder), anchor: None, vocab_size };
        tokenizer.anchor = ('a'..='z').find_map(|letter| tokenizer.anchor_for(letter));
        if tokenizer.anchor.is_none() && tokenizer.grouping != Grouping::Bytes {
            tokenizer.grouping = Grouping::Whole;
        }
        Ok(tokenizer)
    }

    fn anchor_for(&self, letter: char) -> Option<u32> {
        let plain = letter.to_string();
        let ids = [plain.clone(), format!("▁{plain}")].map(|token| self.inner.token_to_id(&token));
        ids.into_iter().flatten().find(|&id| self.decode(&[id], false).as_ref() == Ok(&plain))
    }

    pub fn encode(&self, input: &str, add_special_tokens: bool) -> Outcome<Vec<u32>> {
        let encoding = match &self.plamo {
            None => self.inner.encode_fast(input, add_special_tokens),
            Some(plamo) => self.inner.post_process(plamo.encode(&self.inner, input)?, None, add_special_tokens),
        };
        Ok(encoding.map_err(text)?.get_ids().to_vec())
    }

    /// Adds no special tokens.
    fn encode_plain(&self, input: &str) -> Outcome<Encoding> {
        match &self.plamo {
            None => self.inner.encode(input, false).map_err(text),
            Some(plamo) => plamo.encode(&self.inner, input),
        }
    }

    /// Encodes one or two texts with special tokens, truncated to `most` tokens as `tokenizers` does. Also
    /// returns the index of the second text's first token, for models with token types.
    pub fn encode_texts(&self, first: &str, second: Option<&str>, most: usize) -> Outcome<(Vec<u32>, Option<usize>)> {
        let added = self.inner.get_post_processor().map_or(0, |p| p.added_tokens(second.is_some()));
        let params = TruncationParams { max_length: most.saturating_sub(added), ..Default::default() };
        let first = self.encode_plain(first)?;
        let second = second.map(|second| self.encode_plain(second)).transpose()?;
        let (mut first, mut second) = truncate_encodings(first, second, &params).map_err(text)?;
        // Otherwise, special tokens would also be added to all combinations of the truncated pieces.
        first.take_overflowing();
        second.as_mut().map(|second| second.take_overflowing());
        let encoding = self.inner.post_process(first, second, true).map_err(text)?;
        Ok((encoding.get_ids().to_vec(), encoding.get_type_ids().iter().position(|&kind| kind == 1)))
    }

    /// Returns the range of characters of the text that each token of `encode` comes from; (0, 0) for added
    /// special tokens.
    pub fn offsets(&self, input: &str, add_special_tokens: bool) -> Outcome<Vec<(usize, usize)>> {
        if self.plamo.is_some() {
            return Err("this tokenizer does not know the places of its tokens in a text".to_string());
        }
        let encoding = self.inner.encode_char_offsets(input, add_special_tokens).map_err(text)?;
        Ok(encoding.get_offsets().to_vec())
    }

    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Outcome<String> {
        self.inner.decode(ids, skip_special_tokens).map_err(text)
    }

    /// Decodes the ids as if they were in the middle of a text, with the anchor before them.
    pub fn decode_continuation(&self, ids: &[u32], skip_special_tokens: bool) -> Outcome<String> {
        let Some(anchor) = self.anchor else { return self.decode(ids, skip_special_tokens) };
        let text = self.decode(&[&[anchor], ids].concat(), skip_special_tokens)?;
        Ok(text[1..].to_string())
    }

    pub fn vocab_size(&self) -> u32 {
        self.vocab_size
    }

    pub fn token(&self, id: u32) -> Outcome<String> {
        self.inner.id_to_token(id).ok_or_else(|| format!("no token has the id {id}"))
    }

    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.inner.id_to_token(id).is_some_and(|token| self.inner.get_added_vocabulary().is_special_token(&token))
    }

    pub fn is_byte(&self, id: u32) -> bool {
        self.grouping == Grouping::ByteRuns
            && self.inner.id_to_token(id).is_some_and(|token| fallback_byte(&token).is_some())
    }

    pub fn grouping(&self) -> Grouping {
        self.grouping
    }

    pub fn token_bytes(&self, id: u32) -> Outcome<Vec<u8>> {
        let token = self.token(id)?;
        match (self.grouping, fallback_byte(&token)) {
            (Grouping::Bytes, _) => Ok(undo_byte_level(&token)),
            (Grouping::ByteRuns, Some(byte)) => Ok(vec![byte]),
            _ => Ok(self.decode_continuation(&[id], false)?.into_bytes()),
        }
    }
}

pub fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Returns the byte of a token such as `<0x0A>`.
pub fn fallback_byte(token: &str) -> Option<u8> {
    let hex = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if hex.len() == 2 {
        u8::from_str_radix(hex, 16).ok()
    } else {
        None
    }
}

/// Returns the bytes of a token for the ByteLevel decoder, which writes each byte as one printable
/// character (GPT-2). A token with any other character is plain UTF-8.
fn undo_byte_level(token: &str) -> Vec<u8> {
    token.chars().map(byte_level_byte).collect::<Option<Vec<u8>>>().unwrap_or_else(|| token.as_bytes().to_vec())
}

fn byte_level_byte(shown: char) -> Option<u8> {
    // The characters from U+0100 on stand, in order, for the 68 bytes that are not printable in Latin-1.
    match shown as u32 {
        c @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => Some(c as u8),
        c @ 0x100..=0x120 => Some((c - 0x100) as u8),
        c @ 0x121..=0x142 => Some((c - 0x121 + 0x7F) as u8),
        0x143 => Some(0xAD),
        _ => None,
    }
}

fn grouping_of(decoder: &Option<Json>) -> Grouping {
    let Some(decoder) = decoder else { return Grouping::Token };
    let mut steps = Vec::new();
    flatten(decoder, &mut steps);
    let kinds: Vec<&str> = steps.iter().filter_map(|step| step["type"].as_str()).collect();
    if kinds == ["ByteLevel"] {
        return Grouping::Bytes;
    }
    let fuse = kinds.iter().position(|&kind| kind == "Fuse").unwrap_or(kinds.len());
    let stands_alone = |(at, step): (usize, &&Json)| match kinds[at] {
        "Fuse" => true,
        "Strip" => step["stop"] == 0,
        "Replace" => at < fuse && step["pattern"].get("String").is_some(),
        "ByteFallback" | "Metaspace" | "WordPiece" => at < fuse,
        _ => false,
    };
    if kinds.len() != steps.len() || !steps.iter().enumerate().all(stands_alone) {
        Grouping::Whole
    } else if kinds.contains(&"ByteFallback") {
        Grouping::ByteRuns
    } else {
        Grouping::Token
    }
}

/// Returns the steps of a decoder. Sequences are expanded.
fn flatten<'a>(decoder: &'a Json, steps: &mut Vec<&'a Json>) {
    match decoder["decoders"].as_array() {
        Some(inner) => inner.iter().for_each(|step| flatten(step, steps)),
        None => steps.push(decoder),
    }
}
