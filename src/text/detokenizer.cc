#include "text/detokenizer.h"

#include <algorithm>
#include <utility>

#include "text/bridge.h"
#include "text/utf8.h"

namespace octavo {

using bridge::Grouping;

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens,
                         std::span<const std::int32_t> prompt_tail,
                         std::span<const std::int32_t> kept_special)
    : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens), kept_special_(kept_special) {
  for (const std::int32_t id : prompt_tail) push(id);
  if (tokenizer.grouping() == Grouping::whole) group_.clear();
}

std::string Detokenizer::push(std::int32_t id) {
  if (id < 0 || skips(id)) return {};
  return tokenizer_->grouping() == Grouping::bytes ? push_bytes(id) : push_group(id);
}

bool Detokenizer::skips(std::int32_t id) const {
  return skip_special_tokens_ && tokenizer_->is_special(id) &&
         std::ranges::find(kept_special_, id) == kept_special_.end();
}

std::string Detokenizer::finish() {
  std::string text =
      tokenizer_->grouping() == Grouping::bytes ? replace_invalid_utf8(bytes_) : decode_group();
  bytes_.clear();
  group_.clear();
  return text;
}

std::string Detokenizer::push_bytes(std::int32_t id) {
  bytes_ += tokenizer_->token_bytes(id).value_or("");
  const std::size_t whole = bytes_.size() - incomplete_utf8_tail(bytes_);
  std::string text = replace_invalid_utf8(std::string_view(bytes_).substr(0, whole));
  bytes_.erase(0, whole);
  return text;
}

std::string Detokenizer::push_group(std::int32_t id) {
  if (!tokenizer_->token(id)) return {};
  const Grouping grouping = tokenizer_->grouping();
  const bool stays_open =
      grouping == Grouping::whole || (grouping == Grouping::byte_runs && tokenizer_->is_byte(id));
  if (stays_open) {
    group_.push_back(id);
    return {};
  }
  std::string text = decode_group();
  group_.push_back(id);
  text += decode_group();
  return text;
}

std::string Detokenizer::decode_group() {
  if (group_.empty()) return {};
  std::string text = tokenizer_->decode(group_, false, !at_start_).value_or("\uFFFD");
  // A first token without text (a lone "▁") stays in the group: the next token is decoded together with it,
  // as the start of the text.
  if (at_start_ && text.empty()) return text;
  at_start_ = false;
  group_.clear();
  return text;
}

}  // namespace octavo
