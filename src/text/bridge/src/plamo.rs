//! Splits texts into tokens as PLaMo 2 and 3 (Preferred Networks, 2025) do: the sum of the tokens' scores,
//! in units of 1/10000, is the highest. Of splits with equal sums, the one with the longest first token is
//! chosen, then the one with the longest second token, and so on. Characters without a token become bytes.
//! The unigram model of `tokenizers` is not used, because of equal splits, as in runs of blanks, it chooses
//! the one with the longest last token.

use std::collections::HashMap;

use serde_json::Value as Json;
use tokenizers::models::ModelWrapper;
use tokenizers::{Encoding, OffsetType, Token};

use crate::tokenizer::{fallback_byte, text};
use crate::Outcome;

/// Cost of a character that becomes bytes.
const UNKNOWN: i64 = 10_000_000;
const COST_MAX: i64 = 1 << 31;
/// PLaMo 3: a separator, which is dropped. No token contains it.
const BREAK: char = '\u{EE00}';
/// PLaMo 3: the text before and after a mark is split separately. A mark is `<|plamo:`, at most
/// MARK_CHARS_MAX characters, and `|>`.
const MARK: &str = "<|plamo:";
const MARK_CHARS_MAX: usize = 64;

/// PLaMo 3: runs of one character (except line feeds) or of blanks of at least this length are split
/// separately.
struct Runs {
    repeats: usize,
    blanks: usize,
}

pub struct Segmenter {
    /// Trie: (node, character) to the next node. Node 0 is the root.
    next: HashMap<(u32, char), u32>,
    /// Token that ends at each node, and its cost.
    tokens: Vec<Option<(u32, i64)>>,
    bytes: Vec<u32>,
    runs: Option<Runs>,
}

impl Segmenter {
    /// Returns None unless tokenizer_config.json names PLaMo's class and the vocabulary has scores.
    pub fn of(inner: &tokenizers::Tokenizer, config: &Json) -> Outcome<Option<Segmenter>> {
        let ModelWrapper::Unigram(model) = inner.get_model() else { return Ok(None) };
        let length = |field: &str| config[field].as_u64().filter(|&n| n > 0).map_or(usize::MAX, |n| n as usize);
        let runs = match config["tokenizer_class"].as_str() {
            Some("Plamo2Tokenizer") => None,
            Some("Plamo3Tokenizer") => Some(Runs {
                repeats: length("break_around_repeated_chars_threshold"),
                blanks: length("break_around_consecutive_spaces_threshold"),
            }),
            _ => return Ok(None),
        };
        let mut segmenter = Segmenter { next: HashMap::new(), tokens: vec![None], bytes: Vec::new(), runs };
        let mut bytes = [None; 256];
        for (id, (token, score)) in model.iter().enumerate() {
            match fallback_byte(token) {
                Some(byte) => bytes[byte as usize] = Some(id as u32),
                None => segmenter.add(token, id as u32, (-score * 1e4).round_ties_even() as i64),
            }
        }
        let missing = |byte: usize| format!("there is no token <0x{byte:02X}>");
        for (byte, id) in bytes.into_iter().enumerate() {
            segmenter.bytes.push(id.ok_or_else(|| missing(byte))?);
        }
        Ok(Some(segmenter))
    }

    fn add(&mut self, token: &str, id: u32, cost: i64) {
        let mut node = 0;
        for letter in token.chars() {
            let fresh = self.tokens.len() as u32;
            node = *self.next.entry((node, letter)).or_insert(fresh);
            if node == fresh {
                self.tokens.push(None);
            }
        }
        if node != 0 {
            self.tokens[node as usize] = Some((id, cost.clamp(-COST_MAX, COST_MAX)));
        }
    }

    /// Adds no special tokens.
    pub fn encode(&self, inner: &tokenizers::Tokenizer, input: &str) -> Outcome<Encoding> {
        let mut parts = inner.get_added_vocabulary().extract_and_normalize(inner.get_normalizer(), input);
        parts
            .tokenize(|part| {
                let mut ids = Vec::new();
                for piece in self.pieces(part.get()) {
                    self.segment(piece, &mut ids);
                }
                Ok(ids.into_iter().map(|id| Token::new(id, String::new(), (0, 0))).collect())
            })
            .map_err(text)?;
        parts.into_encoding(None, 0, OffsetType::None).map_err(text)
    }

    fn segment(&self, piece: &str, ids: &mut Vec<u32>) {
        let letters: Vec<char> = piece.chars().collect();
        let mut costs = vec![0; letters.len() + 1]; // cost from each character to the end
        let mut steps = vec![(1, None); letters.len()]; // length of the best token, and the token
        for i in (0..letters.len()).rev() {
            costs[i] = costs[i + 1] + UNKNOWN;
            let mut node = 0;
            for (at, letter) in letters.iter().enumerate().skip(i) {
                let Some(&behind) = self.next.get(&(node, *letter)) else { break };
                node = behind;
                let Some((id, cost)) = self.tokens[node as usize] else { continue };
                if costs[at + 1] + cost <= costs[i] {
                    costs[i] = costs[at + 1] + cost;
                    steps[i] = ((at + 1 - i) as u32, Some(id));
                }
            }
        }
        let mut at = 0;
        while at < letters.len() {
            let (length, id) = steps[at];
            match id {
                Some(id) => ids.push(id),
                None => ids.extend(letters[at].encode_utf8(&mut [0; 4]).bytes().map(|b| self.bytes[b as usize])),
            }
            at += length as usize;
        }
    }

    /// Returns the parts of the text that are split separately.
    fn pieces<'a>(&self, part: &'a str) -> Vec<&'a str> {
        let Some(runs) = &self.runs else { return vec![part] };
        let mut cuts = cuts_at_marks(part);
        cuts.extend(cuts_at_runs(part, runs, &cuts));
        cuts.push(part.len());
        cuts.sort_unstable();
        let mut begin = 0;
        let mut pieces = Vec::new();
        for cut in cuts {
            pieces.extend(part[begin..cut].split(BREAK).filter(|piece| !piece.is_empty()));
            begin = cut;
        }
        pieces
    }
}

/// Returns the positions before and after each mark, ascending.
fn cuts_at_marks(part: &str) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut from = 0;
    while let Some(found) = part[from..].find(MARK) {
        let begin = from + found;
        let name = begin + MARK.len();
        let is_blank = |c: char| c.is_whitespace() || ('\u{1C}'..='\u{1F}').contains(&c);
        let rest = part[name..].char_indices().take(MARK_CHARS_MAX + 1).find(|&(_, c)| c == '|' || is_blank(c));
        match rest.map(|(length, _)| name + length).filter(|&end| part[end..].starts_with("|>")) {
            Some(end) => {
                cuts.extend([begin, end + 2]);
                from = end + 2;
            }
            None => from = begin + 1,
        }
    }
    cuts
}

/// Returns the positions before and after each run, ascending. A run ends at a mark.
fn cuts_at_runs(part: &str, runs: &Runs, marks: &[usize]) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut letters = part.char_indices().peekable();
    while let Some((begin, letter)) = letters.next() {
        let (mut end, mut length) = (begin + letter.len_utf8(), 1);
        while letters.next_if(|&(at, c)| c == letter && marks.binary_search(&at).is_err()).is_some() {
            end += letter.len_utf8();
            length += 1;
        }
        if (letter != '\n' && length >= runs.repeats) || (letter == ' ' && length >= runs.blanks) {
            cuts.extend([begin, end]);
        }
    }
    cuts
}
