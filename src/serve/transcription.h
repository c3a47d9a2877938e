// Converts a sound file to the engine's request: windows, and a prompt for each.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/generation_plan.h"
#include "serve/openai/transcription_request.h"
#include "serve/service.h"

namespace octavo {

// A sound cut into windows at quiet moments, as spectrograms.
struct HeardSound {
  double seconds = 0;
  std::vector<double> starts;  // of the windows, in seconds
  std::vector<MediaPart> windows;
};

// Errors name field "file": see media::decode_sound.
Result<HeardSound> hear(const Service& service, std::string_view file);

// Error: translation or another language from a model that knows only English; an unknown language; special
// tokens in the prompt; or a model without audio input.
Result<> check_transcription(const Service& service, const openai::TranscriptionRequest& request);

// A request for one output token: the sound's language.
Request language_request(const Service& service, const HeardSound& sound);

// request.language must be set. Errors as in prepare_completion.
Result<GenerationPlan> prepare_transcription(const Service& service, openai::TranscriptionRequest request,
                                             HeardSound sound);

}  // namespace octavo
