#include "serve/openai/harmony.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace octavo::openai {

namespace {

constexpr std::string_view kFunctions = "functions.";

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) all.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

std::string_view recipient(std::string_view header) {
  constexpr std::string_view kTo = "to=";
  for (const std::string_view word : words(header))
    if (word.starts_with(kTo)) return word.substr(kTo.size());
  return "";
}

}  // namespace

std::optional<HarmonyTokens> HarmonyTokens::of(const Tokenizer& tokenizer) {
  HarmonyTokens tokens;
  const auto find = [&](std::string_view text, std::int32_t& id) {
    const auto found = tokenizer.id_of(text);
    id = found.value_or(0);
    return found.has_value();
  };
  const bool all = find("<|start|>", tokens.start) && find("<|channel|>", tokens.channel) &&
                   find("<|constrain|>", tokens.constrain) && find("<|message|>", tokens.message) &&
                   find("<|end|>", tokens.end) && find("<|call|>", tokens.call) &&
                   find("<|return|>", tokens.result);
  return all ? std::optional(tokens) : std::nullopt;
}

HarmonyReader::HarmonyReader(const HarmonyTokens& tokens, const Tokenizer& tokenizer,
                             std::span<const std::int32_t> prompt, bool calls)
    : tokens_(tokens), tokenizer_(&tokenizer), calls_(calls) {
  const auto begin = std::find(prompt.rbegin(), prompt.rend(), tokens.start).base();
  if (begin == prompt.begin()) return;
  for (auto id = begin; id != prompt.end(); ++id) take(*id);
}

// Returns whether the token separates two messages.
bool HarmonyReader::parts(std::int32_t id) const {
  return id == tokens_.start || id == tokens_.end || id == tokens_.call || id == tokens_.result;
}

bool HarmonyReader::marks(std::int32_t id) const { return section_ == Section::header || parts(id); }

void HarmonyReader::take(std::int32_t id) {
  if (!marks(id)) return;
  if (parts(id)) {
    section_ = Section::header;
    role_.clear();
    channel_.clear();
    in_channel_ = false;
  } else if (id == tokens_.channel) {
    in_channel_ = true;
  } else if (id == tokens_.message) {
    open_message();
  } else if (id != tokens_.constrain) {
    (in_channel_ ? channel_ : role_).push_back(id);
  }
}

void HarmonyReader::open_message() {
  const std::string role = tokenizer_->decode(role_, true).value_or("");
  const std::string channel = tokenizer_->decode(channel_, true).value_or("");
  std::string_view to = recipient(channel);
  if (to.empty()) to = recipient(role);
  const auto names = words(channel);
  const std::string_view name = names.empty() ? "" : names.front();
  function_.clear();
  if (calls_ && to.starts_with(kFunctions)) {
    function_ = to.substr(kFunctions.size());
    section_ = Section::call;
  } else {
    const bool shown = name.empty() || name == "final" || name == "commentary";
    section_ = to.empty() && shown ? Section::text : Section::thought;
  }
}

}  // namespace octavo::openai
