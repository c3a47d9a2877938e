// Replies of /v1/audio/transcriptions and /v1/audio/translations, as OpenAI and vLLM write them.
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
  std::string language;        // its code
  double seconds = 0;          // of the sound
  std::vector<double> starts;  // of each window, beside the parts of the answer
  TokenId first_time = 0;      // SoundRules::first_time
  double temperature = 0;

  double end_of(std::size_t window) const {
    return window + 1 < starts.size() ? starts[window + 1] : seconds;
  }
};

// The text between two times.
struct Segment {
  double start = 0, end = 0;  // seconds, in the sound
  std::vector<TokenId> tokens{};
  std::string text{};
  double mean_logprob = 0;  // of its tokens and of the time that ends it
};

// Segments of a window's tokens. A segment without an end lasts until the end of the window.
std::vector<Segment> segments_of(const Tokenizer& tokenizer, const Transcript& transcript,
                                 const AnswerPart& window);

// Length divided by the length after zlib: high for text that repeats itself.
double compression_ratio(const std::string& text);

std::unique_ptr<Reply> transcription_reply(const Tokenizer& tokenizer, ReplyOptions options,
                                           Transcript transcript);

}  // namespace octavo::openai
