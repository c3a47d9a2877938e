// Fields of the form that is sent to /v1/audio/transcriptions and /v1/audio/translations.
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
  std::string_view file;  // view into the form
  std::string language;   // language of the audio, as a code of two letters; "": detect it
  std::string prompt;     // text before the audio, or an example of the style
  TranscriptFormat format = TranscriptFormat::json;
  bool translate = false;  // translate into English

  bool timed() const { return format != TranscriptFormat::json && format != TranscriptFormat::text; }
};

// Errors name the field: a wrong type or range, a format that cannot be streamed, or an unsupported value.
// not_found: unknown model.
Result<TranscriptionRequest> parse_transcription_request(std::span<const http::FormPart> form, bool translate,
                                                         const RequestRules& rules);

}  // namespace octavo::openai
