#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "grammar/vocabulary.h"
#include "request/sampling_params.h"
#include "text/tokenizer.h"

namespace octavo {

// Returns the tokens of a model in the form that grammars use. vocab_size: number of logits; tokens beyond
// it are omitted. eos_ids: tokens that end a text. The tokenizer must outlive the vocabulary.
Result<std::shared_ptr<const grammar::Vocabulary>> grammar_vocabulary(const Tokenizer& tokenizer,
                                                                      std::vector<TokenId> eos_ids, int vocab_size);

}  // namespace octavo
