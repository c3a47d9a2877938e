// Reads the form of /v1/audio/transcriptions and /v1/audio/translations.
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
  std::string_view file;  // contents of the audio file; refers to the form's memory
  std::string language;   // two-letter code of the audio's language; "": detect the language
  std::string prompt;     // text before the audio, or an example of the style
  TranscriptFormat format = TranscriptFormat::json;
  bool translate = false;

  bool timed() const { return format != TranscriptFormat::json && format != TranscriptFormat::text; }
};

// Returns an error with the field's name if a value has a wrong type, is out of range or is not supported, or
// if a stream is requested in a format without streams. Returns not_found for an unknown model.
Result<TranscriptionRequest> parse_transcription_request(std::span<const http::FormPart> form, bool translate,
                                                         const RequestRules& rules);

}  // namespace octavo::openai
