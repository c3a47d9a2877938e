// A model's rules for sound: its spectrogram and its special tokens for transcription.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "media/log_mel.h"
#include "request/sampling_params.h"
#include "text/tokenizer.h"

namespace octavo {

// Sound in prompts.
struct PromptSound {
  media::LogMel log_mel;
  std::string token;  // of a sound in a text
};

struct SoundRules {
  media::LogMel log_mel;
  TokenId begin = 0;  // of the text
  TokenId transcribe = 0, translate = 0;
  TokenId previous = 0;    // before what was said before
  TokenId no_times = 0;    // it is to say no times
  TokenId first_time = 0;  // token of 0 seconds; the later ones are kTimeStep apart
  std::vector<std::pair<std::string, TokenId>> languages{};  // by their codes; empty if English-only
  std::vector<TokenId> suppress{};                           // never said
  std::vector<TokenId> begin_suppress{};                     // never said first

  static constexpr double kTimeStep = 0.02;  // seconds

  // nullopt: unknown language.
  std::optional<TokenId> language(std::string_view code) const;
};

// Error (corrupt): the tokenizer lacks one of Whisper's special tokens. english: the model knows only
// English.
Result<SoundRules> sound_rules(const Tokenizer& tokenizer, const media::MelConfig& mel, bool english);

}  // namespace octavo
