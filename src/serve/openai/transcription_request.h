// The form of /v1/audio/transcriptions and /v1/audio/translations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/form.h"
#include "serve/openai/generation_fields.h"

namespace octavo::openai {

enum class TranscriptFormat : std::uint8_t { json, text, verbose_json, srt, vtt };

struct TranscriptionRequest {
  GenerationRequest generation;
  std::string_view file;  // into the form
  std::string language;   // of the sound, as a code of two letters; "": to be found
  std::string prompt;     // what was said before, or how it is to be written
  TranscriptFormat format = TranscriptFormat::json;
  bool translate = false;  // into English

  // Whether the reply has times.
  bool timed() const { return format != TranscriptFormat::json && format != TranscriptFormat::text; }
};

// Errors name the field: a wrong type or range, a format that cannot be streamed, or an unsupported value.
// not_found: unknown model.
Result<TranscriptionRequest> parse_transcription_request(std::span<const http::FormPart> form, bool translate,
                                                         const RequestRules& rules);

}  // namespace octavo::openai
