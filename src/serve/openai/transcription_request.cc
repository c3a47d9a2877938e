#include "serve/openai/transcription_request.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>

#include "http/message.h"
#include "text/utf8.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

constexpr std::array<std::string_view, 5> kFormats = {"json", "text", "verbose_json", "srt", "vtt"};
constexpr std::array<std::string_view, 6> kBooleans = {
    "stream",          "stream_include_usage", "stream_continuous_usage_stats",
    "use_beam_search", "watermarking",         "include_stop_str_in_output"};

json::value value_of(const http::FormPart& part) {
  const bool boolean = std::ranges::find(kBooleans, part.name) != kBooleans.end();
  for (const std::string_view yes : {"true", "1"})
    if (boolean && http::equal_ignoring_case(part.data, yes)) return true;
  for (const std::string_view no : {"false", "0"})
    if (boolean && http::equal_ignoring_case(part.data, no)) return false;
  return json::string(part.data);
}

// Converts the texts of the form to fields. Texts whose name ends with "[]" become a list.
Result<json::object> fields_of(std::span<const http::FormPart> form) {
  json::object fields;
  for (const http::FormPart& part : form) {
    if (part.filename) continue;
    if (invalid_utf8_at(part.name) || invalid_utf8_at(part.data))
      return invalid("", "a form field is not valid UTF-8");
    if (!part.name.ends_with("[]")) {
      fields[part.name] = value_of(part);
      continue;
    }
    json::value& list = fields[part.name];
    if (!list.is_array()) list = json::array();
    list.get_array().emplace_back(part.data);
  }
  return fields;
}

Result<std::string_view> file_of(std::span<const http::FormPart> form) {
  const auto found = std::ranges::find(form, "file", &http::FormPart::name);
  if (found == form.end()) return invalid("file", "is missing: send the sound to transcribe as a file");
  if (!found->filename)
    return invalid("file", "must be a file, got a text: send a filename with the form field");
  return found->data;
}

Result<TranscriptFormat> read_format(Fields& f) {
  std::string name = "json";
  TRY_VOID(f.text("response_format", name));
  if (name == "diarized_json")
    return invalid("response_format",
                   "diarized_json needs a model that names the speakers: use verbose_json");
  const auto found = std::ranges::find(kFormats, name);
  if (found == kFormats.end())
    return invalid("response_format", "must be json, text, verbose_json, srt or vtt, got \"{}\"",
                   name.substr(0, 32));
  return static_cast<TranscriptFormat>(found - kFormats.begin());
}

// Reads timestamp_granularities. verbose_json always has segments.
Result<> read_granularities(Fields& f, TranscriptFormat format) {
  constexpr std::string_view kName = "timestamp_granularities[]";
  std::vector<std::string> granularities;
  TRY_VOID(f.texts(kName, granularities));
  for (const std::string& granularity : granularities) {
    if (granularity == "word") return invalid(kName, "word timestamps are not supported: use segment");
    if (granularity != "segment")
      return invalid(kName, "must be segment, got \"{}\"", granularity.substr(0, 32));
  }
  if (!granularities.empty() && format != TranscriptFormat::verbose_json)
    return invalid(kName, "needs response_format = verbose_json");
  return {};
}

Result<> read_stream(Fields& f, const RequestRules& rules, TranscriptionRequest& request) {
  GenerationRequest& out = request.generation;
  TRY_VOID(f.boolean("stream", out.stream.enabled));
  TRY_VOID(f.boolean("stream_include_usage", out.stream.include_usage));
  TRY_VOID(f.boolean("stream_continuous_usage_stats", out.stream.continuous_usage));
  if (!out.stream.enabled && (out.stream.include_usage || out.stream.continuous_usage))
    return invalid(out.stream.include_usage ? "stream_include_usage" : "stream_continuous_usage_stats",
                   "needs stream = true");
  if (out.stream.enabled && request.timed())
    return invalid("response_format", "the format {} cannot be streamed",
                   kFormats[static_cast<std::size_t>(request.format)]);
  out.stream.include_usage |= rules.force_include_usage;
  out.stream.continuous_usage &= out.stream.include_usage;
  return {};
}

// Reads n and the fields of beam search. Without it, n has no effect, as in vLLM: the reply has one text.
Result<> read_beams(Fields& f, GenerationRequest& out) {
  TRY_VOID(read_beam_search(f, out));
  int& n = out.sampling.n;
  if (!out.beam.enabled && n > 1) {
    out.unknown_fields.emplace_back("n");
    n = 1;
  }
  return f.boolean("include_stop_str_in_output", out.sampling.include_stop_str_in_output);
}

Result<> refuse_unsupported_sound(Fields& f) {
  TRY_VOID(f.refuse("to_language", "only translation into English is supported", "en"));
  return f.refuse("watermarking", "watermarking is not supported", false);
}

}  // namespace

Result<TranscriptionRequest> parse_transcription_request(std::span<const http::FormPart> form, bool translate,
                                                         const RequestRules& rules) {
  TranscriptionRequest request;
  request.translate = translate;
  TRY(const json::object texts, fields_of(form));
  Fields f(texts);
  GenerationRequest& out = request.generation;
  TRY_VOID(read_model(f, rules));
  out.model = rules.model_names.front();
  TRY(request.file, file_of(form));
  TRY_VOID(f.text("language", request.language));
  TRY_VOID(f.text("prompt", request.prompt));
  TRY(request.format, read_format(f));
  TRY_VOID(read_granularities(f, request.format));
  TRY_VOID(read_stream(f, rules, request));
  TRY_VOID(read_draws(f, rules.defaults, out.sampling, 0));
  TRY_VOID(read_beams(f, out));
  out.sampling.max_tokens = rules.defaults.max_tokens;
  std::optional<int> most;
  TRY_VOID(f.integer("max_completion_tokens", most));
  if (most) out.sampling.max_tokens = most, out.limit_field = "max_completion_tokens";
  // only the log-probabilities of the sampled tokens are needed
  if (request.timed()) out.sampling.logprobs.output = 0;
  TRY_VOID(refuse_unsupported_sound(f));
  f.accept({"user", "include[]"});
  TRY_VOID(finish_reading(f, rules, out));
  return request;
}

}  // namespace octavo::openai
