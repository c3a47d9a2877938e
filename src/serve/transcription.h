// Converts an audio file to requests for the engine: windows, and a prompt for each window.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/generation_plan.h"
#include "serve/openai/transcription_request.h"
#include "serve/service.h"

namespace octavo {

// Spectrograms of an audio's windows, which begin and end at quiet moments.
struct HeardSound {
  double seconds = 0;
  std::vector<double> starts;  // start times of the windows in seconds
  std::vector<MediaPart> windows;
};

// Decodes the file. Errors have field "file": see media::decode_sound.
Result<HeardSound> hear(const Service& service, std::string_view file);

// Errors: translation, or a language other than English, with an English-only model; an unknown language;
// special tokens in the prompt; a model without audio input.
Result<> check_transcription(const Service& service, const openai::TranscriptionRequest& request);

// A request for one output token: the language of the audio.
Request language_request(const Service& service, const HeardSound& sound);

// request.language must be set. Errors: as for prepare_completion.
Result<GenerationPlan> prepare_transcription(const Service& service, openai::TranscriptionRequest request,
                                             HeardSound sound);

}  // namespace octavo
