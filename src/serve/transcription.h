// Converts an audio file to requests for the engine. The audio is cut into windows, and each window has a
// prompt.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/generation_plan.h"
#include "serve/openai/transcription_request.h"
#include "serve/service.h"

namespace octavo {

// Spectrograms of the windows of an audio. The audio is cut into windows at quiet moments.
struct DecodedSound {
  double seconds = 0;
  std::vector<double> starts;  // start times of the windows, in seconds
  std::vector<MediaPart> windows;
};

// Decodes the file. Returns an error with field "file" if media::decode_sound fails.
Result<DecodedSound> read_sound(const Service& service, std::string_view file);

// Returns an error if an English-only model gets a translation or another language, if the language is
// unknown, if the prompt contains special tokens, or if the model has no audio input.
Result<> check_transcription(const Service& service, const openai::TranscriptionRequest& request);

// Makes a request for one output token, which is the language of the audio.
Request language_request(const Service& service, const DecodedSound& sound);

// `request.language` must be set. Returns the errors of prepare_completion().
Result<GenerationPlan> prepare_transcription(const Service& service, openai::TranscriptionRequest request,
                                             DecodedSound sound);

}  // namespace octavo
