// A model's settings for audio: the spectrogram, and Whisper's special tokens.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "media/log_mel.h"
#include "request/sampling_params.h"
#include "text/tokenizer.h"

namespace octavo {

struct PromptSound {
  media::LogMel log_mel;
  std::string token;  // placeholder of an audio in a prompt
};

struct SoundRules {
  media::LogMel log_mel;
  TokenId begin = 0;  // <|startoftranscript|>, before the language and the task
  TokenId transcribe = 0, translate = 0;
  TokenId previous = 0;    // token before the text that the user gives as context (`prompt`)
  TokenId no_times = 0;    // token that disables timestamps
  TokenId first_time = 0;  // token of the timestamp 0 s; each following token is kTimeStep later
  // tokens by language code; empty if the model is English-only
  std::vector<std::pair<std::string, TokenId>> languages{};
  std::vector<TokenId> suppress{};        // tokens that are never sampled
  std::vector<TokenId> begin_suppress{};  // tokens that must not be the first output token

  static constexpr double kTimeStep = 0.02;  // seconds

  // Returns nullopt for an unknown language.
  std::optional<TokenId> language(std::string_view code) const;
};

// Finds Whisper's special tokens in the tokenizer. Returns `corrupt` if one is missing. english: whether the
// model is English-only.
Result<SoundRules> sound_rules(const Tokenizer& tokenizer, const media::MelConfig& mel, bool english);

}  // namespace octavo
