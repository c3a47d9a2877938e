#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "grammar/vocabulary.h"
#include "request/sampling_params.h"
#include "text/tokenizer.h"

namespace octavo {

// Converts a tokenizer's tokens to a vocabulary for grammars. vocab_size: number of logits; tokens without
// a logit are left out. eos_ids: end-of-text tokens. The tokenizer must outlive the vocabulary.
Result<std::shared_ptr<const grammar::Vocabulary>> grammar_vocabulary(const Tokenizer& tokenizer,
                                                                      std::vector<TokenId> eos_ids, int vocab_size);

}  // namespace octavo
