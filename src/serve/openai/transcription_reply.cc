#include "serve/openai/transcription_reply.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <cmath>
#include <new>

#include "http/sse.h"
#include "serve/sound_rules.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

constexpr std::string_view kSpaces = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpaces);
  return first == std::string_view::npos ? ""
                                         : text.substr(first, text.find_last_not_of(kSpaces) + 1 - first);
}

// Formats a time as "00:01:02,345". `mark` is the character before the milliseconds.
std::string clock_time(double seconds, char mark) {
  const auto all = static_cast<std::int64_t>(std::llround(seconds * 1000));
  return fmt::format("{:02}:{:02}:{:02}{}{:03}", all / 3'600'000, all / 60'000 % 60, all / 1000 % 60, mark,
                     all % 1000);
}

// Formats a subtitle. Changes "-->" in the text, because the format uses it between times.
std::string subtitle(const Segment& segment, char mark) {
  std::string text(trimmed(segment.text));
  for (std::size_t at = 0; (at = text.find("-->")) != std::string::npos;) text.erase(at, 1);
  return fmt::format("{} --> {}\n{}\n\n", clock_time(segment.start, mark), clock_time(segment.end, mark),
                     text);
}

class TranscriptionReply final : public Reply {
 public:
  TranscriptionReply(const Tokenizer& tokenizer, ReplyOptions options, Transcript transcript)
      : tokenizer_(&tokenizer),
        options_(std::move(options)),
        transcript_(std::move(transcript)),
        waiting_(transcript_.starts.size()) {}

  std::string open(int, const EchoedPrompt&, const Usage*) override { return ""; }

  // Holds the text of a window back until all earlier windows have ended.
  std::string part(const AnswerPart& part, const Usage* usage) override {
    AnswerPart copy = part;
    waiting_[static_cast<std::size_t>(part.index)].append(std::move(copy));
    std::string out;
    while (window_ < waiting_.size()) {
      AnswerPart next = std::exchange(waiting_[window_], {});
      out += event(next, usage);
      if (!next.finish) break;
      ++window_;
      spoken_ = false;
    }
    return out;
  }

  std::string close(const Usage& usage) override {
    if (!options_.include_usage) return stream_end(std::nullopt);
    json::object out = head();
    out["choices"] = json::array();
    out["usage"] = tokens(usage);
    return stream_end(out);
  }

  std::string failed(const Error& error) override { return stream_failed(error); }

  std::string_view content_type() const override {
    const bool is_json =
        transcript_.format == TranscriptFormat::json || transcript_.format == TranscriptFormat::verbose_json;
    return is_json ? "application/json" : "text/plain; charset=utf-8";
  }

  std::string whole(std::span<const AnswerPart> answers, std::span<const EchoedPrompt>,
                    const Usage&) override {
    const std::vector<AnswerPart> parts = best_beams(answers);
    if (transcript_.format == TranscriptFormat::json) return json::serialize(plain(parts));
    if (transcript_.format == TranscriptFormat::text) return text_of(parts) + "\n";
    std::vector<Segment> segments;
    for (const AnswerPart& part : parts)
      std::ranges::move(segments_of(*tokenizer_, transcript_, part), std::back_inserter(segments));
    if (transcript_.format == TranscriptFormat::verbose_json) return json::serialize(verbose(segments));
    const bool srt = transcript_.format == TranscriptFormat::srt;
    std::string out = srt ? "" : "WEBVTT\n\n";
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (srt) out += fmt::format("{}\n", i + 1);
      out += subtitle(segments[i], srt ? ',' : '.');
    }
    return out;
  }

 private:
  // Returns the best answer of each window: a beam search has several, and the first one is the best.
  std::vector<AnswerPart> best_beams(std::span<const AnswerPart> answers) const {
    std::vector<AnswerPart> best;
    for (std::size_t i = 0; i < answers.size(); i += static_cast<std::size_t>(options_.n)) {
      best.push_back(answers[i]);
      best.back().index /= options_.n;
    }
    return best;
  }

  json::object head() const {
    return {{"id", options_.id},
            {"object", transcript_.translated ? "translation.chunk" : "transcription.chunk"},
            {"created", options_.created},
            {"model", options_.model}};
  }

  // Returns the token counts. They include the encoder's input: one token for each frame of the spectrogram.
  json::object tokens(const Usage& usage) const {
    const std::int64_t frames = std::llround(std::ceil(transcript_.seconds * 100));
    return {{"prompt_tokens", usage.prompt_tokens + frames},
            {"total_tokens", usage.prompt_tokens + frames + usage.completion_tokens},
            {"completion_tokens", usage.completion_tokens}};
  }

  std::string event(const AnswerPart& part, const Usage* usage) {
    std::string text = part.text;
    if (!spoken_) {
      text.erase(0, text.find_first_not_of(kSpaces));
      if (!text.empty() && window_ > 0) text.insert(0, separator());
      spoken_ = !text.empty();
    }
    if (text.empty() && !part.finish) return "";
    json::object choice{{"delta", {{"content", text}}}};
    if (part.finish) {
      choice["finish_reason"] = finish_reason_json(part.finish);
      choice["stop_reason"] = stop_reason_json(part.stop_reason);
    }
    json::object out = head();
    out["choices"] = json::array{std::move(choice)};
    if (usage) out["usage"] = tokens(*usage);
    return http::sse_event(json::serialize(out));
  }

  // Returns the text to put between the texts of two windows. Chinese and Japanese use no spaces.
  std::string_view separator() const {
    return transcript_.language == "zh" || transcript_.language == "ja" ? "" : " ";
  }

  std::string text_of(std::span<const AnswerPart> parts) const {
    std::string text;
    for (const AnswerPart& part : parts) add_window(trimmed(part.text), text);
    return text;
  }

  void add_window(std::string_view window, std::string& text) const {
    if (!text.empty() && !window.empty()) text += separator();
    text += window;
  }

  json::object plain(std::span<const AnswerPart> parts) const {
    json::object out{{"text", text_of(parts)}};
    if (!transcript_.translated)
      out["usage"] = {{"type", "duration"},
                      {"seconds", static_cast<std::int64_t>(std::ceil(transcript_.seconds))}};
    return out;
  }

  json::object verbose(std::span<const Segment> segments) const {
    std::string text;
    json::array shown;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const Segment& s = segments[i];
      text += s.text;
      shown.push_back(json::object{{"id", i},
                                   {"seek", static_cast<std::int64_t>(s.start)},
                                   {"start", s.start},
                                   {"end", s.end},
                                   {"text", s.text},
                                   {"tokens", json::value_from(s.tokens)},
                                   {"temperature", transcript_.temperature},
                                   {"avg_logprob", s.mean_logprob},
                                   {"compression_ratio", compression_ratio(s.text)},
                                   {"no_speech_prob", nullptr}});
    }
    return {{"task", transcript_.translated ? "translate" : "transcribe"},
            {"language", transcript_.language},
            {"duration", transcript_.seconds},
            {"text", trimmed(text)},
            {"segments", std::move(shown)}};
  }

  const Tokenizer* tokenizer_;
  ReplyOptions options_;
  Transcript transcript_;
  std::vector<AnswerPart> waiting_;  // parts of each window that wait until the earlier windows have ended
  std::size_t window_ = 0;
  bool spoken_ = false;
};

}  // namespace

std::vector<Segment> segments_of(const Tokenizer& tokenizer, const Transcript& transcript,
                                 const AnswerPart& window) {
  const auto number = static_cast<std::size_t>(window.index);
  const double begin = transcript.starts[number];
  std::vector<Segment> segments;
  Segment open{.start = begin};
  double sum = 0;
  std::size_t counted = 0;
  const auto end_at = [&](double time) {
    open.end = std::max(open.start, time);
    open.text = tokenizer.decode(open.tokens, true).value_or("");
    open.mean_logprob = counted > 0 ? sum / static_cast<double>(counted) : 0;
    segments.push_back(std::exchange(open, {.start = time}));
    sum = 0;
    counted = 0;
  };
  for (std::size_t i = 0; i < window.token_ids.size(); ++i) {
    const TokenId id = window.token_ids[i];
    const bool is_time = id >= transcript.first_time;
    if (!is_time && tokenizer.is_special(id)) continue;
    if (i < window.logprobs.size() && (!is_time || !open.tokens.empty())) {
      sum += shown_logprob(window.logprobs[i].logprob);
      ++counted;
    }
    const double time = begin + SoundRules::kTimeStep * (id - transcript.first_time);
    if (!is_time)
      open.tokens.push_back(id);
    else if (open.tokens.empty())
      open.start = time;
    else
      end_at(time);
  }
  if (!open.tokens.empty()) end_at(transcript.end_of(number));
  return segments;
}

double compression_ratio(const std::string& text) {
  uLongf packed = compressBound(static_cast<uLong>(text.size()));
  std::vector<Bytef> bytes(packed);
  const int done = compress(bytes.data(), &packed, reinterpret_cast<const Bytef*>(text.data()),
                            static_cast<uLong>(text.size()));
  // the output buffer is large enough, so only a lack of memory can fail
  if (done != Z_OK) throw std::bad_alloc();
  return static_cast<double>(text.size()) / static_cast<double>(packed);
}

std::unique_ptr<Reply> transcription_reply(const Tokenizer& tokenizer, ReplyOptions options,
                                           Transcript transcript) {
  return std::make_unique<TranscriptionReply>(tokenizer, std::move(options), std::move(transcript));
}

}  // namespace octavo::openai
