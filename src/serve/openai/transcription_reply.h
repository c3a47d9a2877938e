// Replies of /v1/audio/transcriptions and /v1/audio/translations, in the formats of OpenAI and vLLM.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/openai/reply.h"
#include "serve/openai/transcription_request.h"

namespace octavo::openai {

// The reply's fields beside the text.
struct Transcript {
  TranscriptFormat format = TranscriptFormat::json;
  bool translated = false;
  std::string language;        // language code
  double seconds = 0;          // length of the audio
  std::vector<double> starts;  // start of each window in seconds
  TokenId first_time = 0;      // first timestamp token: SoundRules::first_time
  double temperature = 0;

  double end_of(std::size_t window) const {
    return window + 1 < starts.size() ? starts[window + 1] : seconds;
  }
};

// The text between two timestamps.
struct Segment {
  double start = 0, end = 0;  // seconds from the start of the audio
  std::vector<TokenId> tokens{};
  std::string text{};
  double mean_logprob = 0;  // mean over its tokens, including the timestamp at its end
};

// Splits a window's tokens into segments. A segment without an end timestamp lasts until the end of the
// window.
std::vector<Segment> segments_of(const Tokenizer& tokenizer, const Transcript& transcript,
                                 const AnswerPart& window);

// Length of the text divided by its length after zlib: high for repetitive text.
double compression_ratio(const std::string& text);

std::unique_ptr<Reply> transcription_reply(const Tokenizer& tokenizer, ReplyOptions options,
                                           Transcript transcript);

}  // namespace octavo::openai
