#include "serve/transcription.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "media/sound.h"
#include "serve/openai/transcription_reply.h"
#include "serve/prepare.h"

namespace octavo {
namespace {

// The audio is cut at a quiet moment within the last second of a window. This is the number of samples in one
// second.
constexpr std::size_t kQuietSearch = media::MelConfig::kRate;

MediaPart window_of(const media::LogMel& log_mel, std::span<const float> samples) {
  const std::vector<float> mel = log_mel(samples);
  const auto bytes = std::as_bytes(std::span(mel));
  return {.digest = hash_bytes(HashAlgorithm::sha256, bytes, 0),
          .bytes = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
}

// Returns the tokens of the previous text. As in OpenAI's code, only the last tokens are used.
Result<std::vector<TokenId>> previous_tokens(const Service& service, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return std::vector<TokenId>{};
  const std::size_t end = text.find_last_not_of(" \t\r\n") + 1;
  TRY(std::vector<TokenId> ids, service.tokenizer.encode(" " + text.substr(first, end - first), false,
                                                         prompt_bytes_max(service, true)));
  const SoundRules& rules = *service.options.media.transcription;
  for (const TokenId id : ids)
    if (service.tokenizer.is_special(id) || id >= rules.first_time)
      return invalid("prompt", "must not contain special tokens, such as {}",
                     service.tokenizer.token(id).value_or(""));
  const auto most = static_cast<std::size_t>(std::max(0, service.options.rules.max_model_len / 2 - 1));
  if (ids.size() > most) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(most));
  ids.insert(ids.begin(), rules.previous);
  return ids;
}

Result<std::vector<TokenId>> prompt_of(const Service& service, const openai::TranscriptionRequest& request) {
  const SoundRules& rules = *service.options.media.transcription;
  TRY(std::vector<TokenId> prompt, previous_tokens(service, request.prompt));
  prompt.push_back(rules.begin);
  if (const std::optional<TokenId> language = rules.language(request.language)) {
    prompt.push_back(*language);
    prompt.push_back(request.translate ? rules.translate : rules.transcribe);
  }
  prompt.push_back(request.timed() ? rules.first_time : rules.no_times);
  return prompt;
}

}  // namespace

Result<DecodedSound> read_sound(const Service& service, std::string_view file) {
  const media::LogMel& log_mel = service.options.media.transcription->log_mel;
  auto samples = media::decode_sound(std::as_bytes(std::span(file)), media::MelConfig::kRate);
  if (!samples) {
    samples.error().field = "file";
    return std::unexpected(std::move(samples.error()));
  }
  const auto window = static_cast<std::size_t>(log_mel.config().samples());
  std::vector<std::size_t> cuts = media::quiet_cuts(*samples, window, std::min(window, kQuietSearch));
  const auto seconds = [](std::size_t count) { return static_cast<double>(count) / media::MelConfig::kRate; };
  DecodedSound sound{.seconds = seconds(samples->size()), .starts = {}, .windows = {}};
  cuts.push_back(samples->size());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    sound.starts.push_back(seconds(cuts[i]));
    sound.windows.push_back(window_of(log_mel, std::span(*samples).subspan(cuts[i], cuts[i + 1] - cuts[i])));
  }
  return sound;
}

Result<> check_transcription(const Service& service, const openai::TranscriptionRequest& request) {
  const SoundRules& rules = *service.options.media.transcription;
  if (rules.languages.empty() && request.translate)
    return invalid("model", "{} supports only English and cannot translate", request.generation.model);
  if (request.language.empty() || rules.language(request.language)) return {};
  if (rules.languages.empty()) {
    if (request.language == "en") return {};
    return invalid("language", "must be en, got \"{}\"", request.language.substr(0, 32));
  }
  return invalid("language", "must be one of {}, got \"{}\"",
                 fmt::join(rules.languages | std::views::keys, ", "), request.language.substr(0, 32));
}

Request language_request(const Service& service, const DecodedSound& sound) {
  const SoundRules& rules = *service.options.media.transcription;
  Request request;
  request.prompt = {rules.begin};
  request.media = {sound.windows.front()};
  request.sampling.temperature = 0;
  request.sampling.max_tokens = 1;
  for (const TokenId id : rules.languages | std::views::values)
    request.sampling.tokens.allowed_token_ids.push_back(id);
  return request;
}

Result<GenerationPlan> prepare_transcription(const Service& service, openai::TranscriptionRequest request,
                                             DecodedSound sound) {
  const SoundRules& rules = *service.options.media.transcription;
  TRY(const std::vector<TokenId> prompt, prompt_of(service, request));
  SamplingParams& sampling = request.generation.sampling;
  for (const TokenId id : rules.suppress) sampling.tokens.bad_word_ids.push_back({id});
  sampling.tokens.begin_suppress_tokens = rules.begin_suppress;
  openai::Transcript transcript{.format = request.format,
                                .translated = request.translate,
                                .language = request.language.empty() ? "en" : request.language,
                                .seconds = sound.seconds,
                                .starts = std::move(sound.starts),
                                .first_time = rules.first_time,
                                .temperature = sampling.temperature};
  const auto reply = [&](const Tokenizer& tokenizer, openai::ReplyOptions options) {
    return openai::transcription_reply(tokenizer, std::move(options), std::move(transcript));
  };
  // Must be before the windows are moved out of `sound`.
  std::vector<std::vector<TokenId>> prompts(sound.windows.size(), prompt);
  return plan_generation(service, std::move(request.generation), std::move(prompts),
                         {.sources = std::move(sound.windows)},
                         request.translate ? "translate-" : "transcribe-", reply);
}

}  // namespace octavo
