// The reply of vLLM's /generative_scoring.
#pragma once

#include <memory>

#include "serve/openai/reply.h"

namespace octavo::openai {

// Each answer has one output token, with the log-probabilities of the labels (logprob_token_ids). The score
// is the probability of the first label. among_labels: true: relative to the sum over all labels; false: in
// the whole vocabulary. An aborted answer has no log-probabilities, and its score is null.
std::unique_ptr<Reply> scoring_reply(ReplyOptions options, bool among_labels);

}  // namespace octavo::openai
