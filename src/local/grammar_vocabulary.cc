#include "local/grammar_vocabulary.h"

#include <string>
#include <utility>

namespace octavo {

Result<std::shared_ptr<const grammar::Vocabulary>> grammar_vocabulary(const Tokenizer& tokenizer,
                                                                      std::vector<TokenId> eos_ids) {
  constexpr std::size_t kMaskCacheBytesMax = std::size_t{64} << 20;
  std::vector<std::string> tokens(static_cast<std::size_t>(tokenizer.vocab_size()));
  std::vector<TokenId> special;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const bool named = tokenizer.is_special(id);
    if (named) special.push_back(id);
    tokens[static_cast<std::size_t>(id)] =
        (named ? tokenizer.token(id) : tokenizer.token_bytes(id)).value_or("");
  }
  std::erase_if(eos_ids, [&](TokenId id) { return id >= tokenizer.vocab_size(); });
  return grammar::Vocabulary::make(std::move(tokens), std::move(special), std::move(eos_ids),
                                   kMaskCacheBytesMax, [&tokenizer](std::string_view text) {
                                     return tokenizer.encode(text, false).value_or(std::vector<TokenId>{});
                                   });
}

}  // namespace octavo
