// vLLM's prompt_logprob_token_ids and prompt_token_id_logprobs: log-probabilities of listed tokens at the
// positions of a prompt.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "openai/request_fields.h"
#include "request/request.h"
#include "serve/openai/generation_fields.h"

namespace octavo::openai {

// Reads prompt_logprob_token_ids (a row of ids for each position) and prompt_logprob_start into `out`. Pads
// shorter rows with -1. check_request() compares the number of rows with the prompt.
Result<> read_prompt_scores(Fields& fields, const RequestRules& rules, LogprobRequest& out);

// Returns the log-probabilities as vLLM sends them: f32 [rows, listed tokens] in NumPy's .npy format (version
// 1.0, little-endian), as base64. Positions before prompt_logprob_start have no row. Padding is -infinity.
std::string prompt_scores_base64(std::span<const TokenLogprobs> rows);

}  // namespace octavo::openai
