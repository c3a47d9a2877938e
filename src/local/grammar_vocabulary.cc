#include "local/grammar_vocabulary.h"

#include <algorithm>
#include <string>
#include <utility>

namespace octavo {

Result<std::shared_ptr<const grammar::Vocabulary>> grammar_vocabulary(const Tokenizer& tokenizer,
                                                                      std::vector<TokenId> eos_ids, int vocab_size) {
  constexpr std::size_t kMaskCacheBytesMax = std::size_t{64} << 20;
  const TokenId count = std::min(tokenizer.vocab_size(), vocab_size);
  std::vector<std::string> tokens(static_cast<std::size_t>(count));
  std::vector<TokenId> special;
  for (TokenId id = 0; id < count; ++id) {
    const bool named = tokenizer.is_special(id);
    if (named) special.push_back(id);
    tokens[static_cast<std::size_t>(id)] =
        (named ? tokenizer.token(id) : tokenizer.token_bytes(id)).value_or("");
  }
  std::erase_if(eos_ids, [&](TokenId id) { return id >= count; });
  return grammar::Vocabulary::make(std::move(tokens), std::move(special), std::move(eos_ids),
                                   kMaskCacheBytesMax, [&tokenizer, count](std::string_view text) {
                                     auto ids = tokenizer.encode(text, false).value_or(std::vector<TokenId>{});
                                     if (std::ranges::any_of(ids, [&](TokenId id) { return id >= count; })) ids.clear();
                                     return ids;
                                   });
}

}  // namespace octavo
