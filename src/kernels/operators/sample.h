// The sample operator: selects tokens from logits.
#pragma once

#include "kernels/draw_rule.h"
#include "kernels/sampling_math.h"
#include "tensor/view.h"

namespace octavo {

// A list of items per row, all in one array. The list of row r has the items [starts[r], starts[r + 1]).
struct RowLists {
  View starts;  // i32 [rows + 1]; optional; if missing, all lists are empty
  View ids;     // i32: token ids, no duplicates in a row
};

// Samples one token per row. The order of operations is vLLM's: raw logprobs; mask; bias (minus infinity bans
// a token); penalties (repetition, frequency, presence); temperature; min_p; top_k; top_p; one draw.
//
// Tokens are ordered by logit, descending; ties by id, ascending. Each filter keeps the first tokens of this
// order:
//   min_p  the tokens at least min_p times as likely as the first
//   top_k  the first top_k of these
//   top_p  the smallest number of these whose share of their total mass reaches top_p
//
// The draw inverts the cumulative distribution of the kept tokens, by ascending id. Masses are integers
// (kernels/sampling_math.h), so all backends keep and draw the same tokens, in any order of addition.
//
// Arrays are [rows] unless stated otherwise. A row has no result if its logits contain NaN or plus infinity,
// or if the filters remove all tokens. Then out_id is -1, out_rank is 0, out_logprob is kLogprobFloor, and
// top ids are -1.
struct SampleArgs {
  View logits;  // f32 [rows, vocab]; overwritten

  View rules;  // DrawRule [rows] as u8 [rows, sizeof(DrawRule)]

  RowLists history;     // tokens of prompt and output, for penalties
  // i32, parallel to history.ids: number of times that the token occurs in the output; 0: the token is only
  // in the prompt
  View history_counts;

  RowLists bias;     // logit_bias and banned tokens
  View bias_values;  // f32, parallel to bias.ids; never plus infinity

  View mask;  // i32 [masks, (vocab + 31) / 32]: bit 1 allows a token; DrawRule::mask_row selects the row

  // A row can report the logprob and the rank of the selected token, and the logprobs of a list of tokens.
  // The rank is 1 + the number of tokens with greater logits.
  //
  // `reported`: at most k tokens per row to report instead of the most likely tokens; duplicates are allowed.
  RowLists reported;
  bool processed = false;  // true: logprobs after all processing; false: raw logprobs

  View out_id;            // i32
  View out_logprob;       // f32; if missing, nothing is reported, and the outputs below are not written
  View out_rank;          // i32
  // i32 [rows, k]. Elements after the end of the row's list are not written. If the view is missing, no
  // list is reported.
  View out_top_ids;
  View out_top_logprobs;  // f32 [rows, k]

  const DrawRule* draw_rules() const { return static_cast<const DrawRule*>(rules.data); }
};

}  // namespace octavo
