// The reply of vLLM's /generative_scoring.
#pragma once

#include <memory>

#include "serve/openai/reply.h"

namespace octavo::openai {

// Each answer has one output token, with the log-probabilities of the labels (logprob_token_ids). The score
// is the probability of the first label: with `among_labels`, its share of the probability of all labels,
// otherwise its probability in the whole vocabulary. An answer without log-probabilities, because it was
// aborted, has the score null.
std::unique_ptr<Reply> scoring_reply(ReplyOptions options, bool among_labels);

}  // namespace octavo::openai
