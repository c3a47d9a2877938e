// A model's tokens as grammars see them.
#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "grammar/vocabulary.h"
#include "request/sampling_params.h"
#include "text/tokenizer.h"

namespace octavo {

// For a model with this number of logits: omits tokens beyond it. eos_ids: the tokens that end a text. The
// tokenizer must outlive the vocabulary.
Result<std::shared_ptr<const grammar::Vocabulary>> grammar_vocabulary(const Tokenizer& tokenizer,
                                                                      std::vector<TokenId> eos_ids, int vocab_size);

}  // namespace octavo
