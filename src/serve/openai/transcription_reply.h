// Replies of /v1/audio/transcriptions and /v1/audio/translations, in the formats of OpenAI and vLLM.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/openai/reply.h"
#include "serve/openai/transcription_request.h"

namespace octavo::openai {

struct Transcript {
  TranscriptFormat format = TranscriptFormat::json;
  bool translated = false;
  std::string language;
  double seconds = 0;          // length of the audio in seconds
  std::vector<double> starts;  // start of each window, in seconds
  TokenId first_time = 0;      // SoundRules::first_time
  double temperature = 0;

  double end_of(std::size_t window) const {
    return window + 1 < starts.size() ? starts[window + 1] : seconds;
  }
};

// The text between two timestamps.
struct Segment {
  double start = 0, end = 0;  // seconds since the start of the audio
  std::vector<TokenId> tokens{};
  std::string text{};
  double mean_logprob = 0;  // mean over the segment's tokens, including the timestamp at the end
};

// Splits the tokens of a window at the timestamps. A segment without an end timestamp lasts until the end of
// the window.
std::vector<Segment> segments_of(const Tokenizer& tokenizer, const Transcript& transcript,
                                 const AnswerPart& window);

// Returns the length of the text divided by its length after zlib. Repetitive text has a high ratio.
double compression_ratio(const std::string& text);

std::unique_ptr<Reply> transcription_reply(const Tokenizer& tokenizer, ReplyOptions options,
                                           Transcript transcript);

}  // namespace octavo::openai
