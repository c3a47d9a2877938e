// The sample operator: from logits to tokens.
#pragma once

#include "kernels/draw_rule.h"
#include "kernels/sampling_math.h"
#include "tensor/view.h"

namespace octavo {

// One list per row, flat: row r owns items [starts[r], starts[r + 1]).
struct RowLists {
  View starts;  // i32 [rows + 1]; optional: all lists are empty
  View ids;     // i32 token ids, no duplicates in a row
};

// Samples one token per row, in vLLM's order. Raw log-probabilities come first. Then come mask, bias (minus
// infinity bans), penalties (repetition, frequency, presence), temperature, min_p, top_k, top_p, and one
// draw.
//
// Tokens are ordered by logit, descending; ties by id, ascending. Each filter keeps a beginning of that
// order:
//   min_p  the tokens at least min_p times as likely as the first
//   top_k  exactly top_k of those
//   top_p  the fewest of those whose share of their mass reaches top_p
// The draw inverts the cumulative distribution of the kept tokens, by ascending id. Masses are integers
// (kernels/sampling_math.h), so all backends keep and draw the same tokens, for any order of addition.
//
// Every array is [rows] unless stated otherwise. A row has no result if its logits hold a NaN or plus
// infinity, or if no token remains. The outputs are then out_id -1, rank 0, kLogprobFloor and top ids -1.
struct SampleArgs {
  View logits;  // f32 [rows, vocab]; overwritten

  View rules;  // DrawRule [rows] as u8 [rows, sizeof(DrawRule)]

  RowLists history;     // tokens of prompt and output, for penalties
  View history_counts;  // i32, parallel to history.ids: count in the output; 0: only in the prompt

  RowLists bias;     // logit_bias, bans
  View bias_values;  // f32, parallel to bias.ids; never plus infinity

  View mask;  // i32 [masks, (vocab + 31) / 32]: bit set = allowed; rows that DrawRule::mask_row names

  // Report: the chosen token with its rank (1 + number of tokens with greater logits), and a list of tokens.
  RowLists reported;       // at most k tokens to report instead of the first ones; duplicates are allowed
  bool processed = false;  // log-probabilities after all processing instead of raw ones

  View out_id;            // i32
  View out_logprob;       // f32; this and all below are not written without a report
  View out_rank;          // i32
  View out_top_ids;       // i32 [rows, k]; entries beyond the row's list are not written; optional: k is 0
  View out_top_logprobs;  // f32 [rows, k]

  const DrawRule* draw_rules() const { return static_cast<const DrawRule*>(rules.data); }
};

}  // namespace octavo
