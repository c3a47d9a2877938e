// The sample operator: from logits to tokens.
#pragma once

#include "kernels/sampling_math.h"
#include "tensor/view.h"

namespace octavo {

// A list for each row, flat: row r owns items [starts[r], starts[r + 1]).
struct RowLists {
  View starts;  // i32 [rows + 1]; optional: every list empty
  View ids;     // i32 token ids, each at most once in a row
};

// From logits to tokens, in vLLM's order: raw log-probabilities are taken; then mask, bias (minus infinity
// bans), penalties (repetition, frequency, presence), temperature, min_p, top_k, top_p, and one draw.
//
// Tokens are ordered by logit, the greater first, equal ones by id, the lower first. min_p, top_k and top_p
// each keep a beginning of that order: the tokens at least min_p times as likely as the first; exactly top_k
// of those; the fewest of those whose share of their mass reaches top_p. The draw inverts the cumulative
// distribution of what is kept, in the order of the ids. Masses are integers (kernels/sampling_math.h), so
// that all backends keep and draw the same tokens whatever the order in which they add.
//
// Every array is [rows] unless said otherwise. A row whose logits hold a NaN or plus infinity, or where
// nothing is left to choose, gets out_id -1, rank 0, kLogprobFloor and top ids -1.
struct SampleArgs {
  View logits;  // f32 [rows, vocab]; overwritten

  View temperature;  // f32: 0, or at least 1e-5. 0: the first in order, without filters
  View top_k;        // i32; 0: off
  View top_p;        // f32; 1: off
  View min_p;        // f32; 0: off
  View random;       // i64: 64 random bits, the draw
  View forced;       // i32: report on this token, from the raw logits, instead of choosing; -1: choose

  RowLists history;         // tokens of prompt and output
  View history_counts;      // i32, beside history.ids: times in the output; 0: only in the prompt
  View repetition_penalty;  // f32; this and the two below with history
  View frequency_penalty;   // f32
  View presence_penalty;    // f32

  RowLists bias;     // logit_bias, bans
  View bias_values;  // f32, beside bias.ids; never plus infinity

  View mask_rows;  // i32: row of `mask`, or -1; optional
  View mask;       // i32 [masks, (vocab + 31) / 32]: bit set = allowed; with mask_rows

  // What to report: the chosen token with its rank (1 + the tokens of greater logit), and a list.
  View top_counts;         // i32, at most k: how many of the first in order; -1: no log-probabilities at all
  RowLists reported;       // at most k tokens (also the same twice) to report instead of the first
  bool processed = false;  // log-probabilities after all processing instead of the model's own

  View out_id;            // i32
  View out_logprob;       // f32, as all below left alone where top_counts is -1
  View out_rank;          // i32
  View out_top_ids;       // i32 [rows, k]; entries beyond the row's list are left alone; optional: k is 0
  View out_top_logprobs;  // f32 [rows, k]
};

}  // namespace octavo
