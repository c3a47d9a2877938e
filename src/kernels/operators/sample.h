// The sample operator: from logits to tokens.
#pragma once

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

  View temperature;  // f32: 0, or at least 1e-5. 0: greedy, without filters
  View top_k;        // i32; 0: off
  View top_p;        // f32; 1: off
  View min_p;        // f32; 0: off
  View random;       // i64: 64 random bits, the draw
  View forced;       // i32: token to report from the raw logits, without sampling; -1: sample

  RowLists history;         // tokens of prompt and output
  View history_counts;      // i32, parallel to history.ids: count in the output; 0: only in the prompt
  View repetition_penalty;  // f32; all three penalties require history
  View frequency_penalty;   // f32
  View presence_penalty;    // f32

  RowLists bias;     // logit_bias, bans
  View bias_values;  // f32, parallel to bias.ids; never plus infinity

  View mask_rows;  // i32: row of `mask`, or -1; optional
  View mask;       // i32 [masks, (vocab + 31) / 32]: bit set = allowed; with mask_rows

  // Report: the chosen token with its rank (1 + number of tokens with greater logits), and a list of tokens.
  View top_counts;         // i32, at most k: number of first tokens to report; -1: no log-probabilities
  RowLists reported;       // at most k tokens to report instead of the first ones; duplicates are allowed
  bool processed = false;  // log-probabilities after all processing instead of raw ones

  View out_id;            // i32
  View out_logprob;       // f32; this and all below are not written if top_counts is -1
  View out_rank;          // i32
  View out_top_ids;       // i32 [rows, k]; entries beyond the row's list are not written; optional: k is 0
  View out_top_logprobs;  // f32 [rows, k]
};

}  // namespace octavo
