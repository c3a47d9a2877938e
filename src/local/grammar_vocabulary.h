// A model's tokens as grammars see them.
#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "grammar/vocabulary.h"
#include "request/sampling_params.h"
#include "text/tokenizer.h"

namespace octavo {

// Of a model with this number of logits: tokens beyond are left out. eos_ids: the tokens that end a text. The tokenizer
// outlives the vocabulary.
Result<std::shared_ptr<const grammar::Vocabulary>> grammar_vocabulary(const Tokenizer& tokenizer,
                                                                      std::vector<TokenId> eos_ids, int vocab_size);

}  // namespace octavo
