#include "serve/sound_rules.h"

#include <algorithm>

namespace octavo {

std::optional<TokenId> SoundRules::language(std::string_view code) const {
  const auto found =
      std::ranges::find(languages, code, [](const auto& entry) { return std::string_view(entry.first); });
  if (found == languages.end()) return std::nullopt;
  return found->second;
}

Result<SoundRules> sound_rules(const Tokenizer& tokenizer, const media::MelConfig& mel, bool english) {
  SoundRules rules{.log_mel = media::LogMel(mel)};
  for (const auto& [name, id] : {std::pair("<|startoftranscript|>", &rules.begin),
                                 {"<|transcribe|>", &rules.transcribe},
                                 {"<|translate|>", &rules.translate},
                                 {"<|startofprev|>", &rules.previous},
                                 {"<|notimestamps|>", &rules.no_times}}) {
    const std::optional<TokenId> found = tokenizer.id_of(name);
    if (!found)
      return field_failure("tokenizer", ErrorCode::corrupt,
                           "the tokenizer has no token {}, which Whisper needs", name);
    *id = *found;
  }
  // Tokenizers of older checkpoints lack the tokens of times, but the networks have them.
  rules.first_time = rules.no_times + 1;
  if (english) return rules;
  // Language tokens are between the begin token and the task tokens.
  for (TokenId id = rules.begin + 1; id < std::min(rules.transcribe, rules.translate); ++id) {
    const std::string token = tokenizer.token(id).value_or("");
    if (token.size() > 4 && token.starts_with("<|") && token.ends_with("|>"))
      rules.languages.emplace_back(token.substr(2, token.size() - 4), id);
  }
  return rules;
}

}  // namespace octavo
