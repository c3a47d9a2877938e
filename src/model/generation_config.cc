#include "model/generation_config.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <cmath>
#include <filesystem>
#include <limits>

#include "model/params_file.h"
#include "weights/gguf.h"
#include "weights/json.h"

namespace octavo {
namespace {

using boost::json::value;

// Returns nullopt if the field is missing or null.
Result<std::optional<double>> number(const boost::json::object& file, std::string_view field) {
  const value* v = file.if_contains(field);
  if (v == nullptr || v->is_null()) return std::nullopt;
  if (!v->is_number())
    return field_failure(field, ErrorCode::corrupt, "generation_config.json: {} must be a number", field);
  return v->to_number<double>();
}

Result<std::optional<int>> integer(const boost::json::object& file, std::string_view field) {
  TRY(const std::optional<double> v, number(file, field));
  if (!v) return std::nullopt;
  if (std::trunc(*v) != *v || std::abs(*v) > std::numeric_limits<int>::max())
    return field_failure(field, ErrorCode::corrupt,
                         "generation_config.json: {} must be a whole number of 32 bits, got {}", field, *v);
  return static_cast<int>(*v);
}

// Adds the token ids of a field, which may be an id, a list of ids, or null.
Result<> add_tokens(const boost::json::object& file, std::string_view field, std::vector<std::int32_t>& ids) {
  const value* v = file.if_contains(field);
  if (v == nullptr || v->is_null()) return {};
  const auto add = [&](const value& id) -> Result<> {
    const std::int64_t* n = id.if_int64();
    if (n == nullptr || *n < 0 || *n > std::numeric_limits<std::int32_t>::max())
      return field_failure(field, ErrorCode::corrupt, "{} must be a token id or a list of token ids", field);
    ids.push_back(static_cast<std::int32_t>(*n));
    return {};
  };
  if (const boost::json::array* list = v->if_array()) {
    for (const value& id : *list) TRY_VOID(add(id));
    return {};
  }
  return add(*v);
}

// Reads a JSON object from a file. The result is empty if the file is missing.
Result<boost::json::object> read_object(const std::string& directory, std::string_view name) {
  auto file = read_json_file(fmt::format("{}/{}", directory, name));
  if (!file && file.error().code == ErrorCode::not_found) return boost::json::object{};
  if (!file) return std::unexpected(file.error());
  if (!file->is_object()) return failure(ErrorCode::corrupt, "{} must contain a JSON object", name);
  return file->as_object();
}

// Tokens that end a chat message. A model may generate one of them although its files do not list it.
constexpr std::array<std::string_view, 9> kEndNames = {
    "<|eot_id|>",    "<|eom_id|>",      "<|im_end|>",         "<|end|>", "<end_of_turn>",
    "<|endoftext|>", "<|end_of_text|>", "<end_of_utterance>", "<turn|>"};

// Id of "</s>" in all of Mistral's vocabularies. params.json does not contain it.
constexpr std::int32_t kMistralEnd = 2;

// Sampling fields in GGUF files, and in generation_config.json.
constexpr std::pair<std::string_view, std::string_view> kGgufSampling[] = {
    {"temp", "temperature"},
    {"top_k", "top_k"},
    {"top_p", "top_p"},
    {"min_p", "min_p"},
    {"penalty_repeat", "repetition_penalty"}};

Result<GenerationConfig> read_gguf(const std::string& path) {
  TRY(const Gguf gguf, Gguf::open(path));
  const GgufMetadata& m = gguf.metadata;
  GenerationConfig g;
  for (const auto& [key, name] : kGgufSampling) {
    TRY(const auto value, m.number(fmt::format("general.sampling.{}", key)));
    if (value) g.sampling[name] = *value;
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  TRY(boost::json::object beside,
      read_object(folder.empty() ? "." : folder.string(), "generation_config.json"));
  for (const auto& [key, name] : kGgufSampling)
    if (const value* v = beside.if_contains(name); v != nullptr && !g.sampling.contains(name))
      g.sampling[name] = *v;
  TRY(const auto tokens, m.texts("tokenizer.ggml.tokens"));
  for (const char* key : {"eos", "eot", "eom"}) {
    TRY(const auto id, m.number(fmt::format("tokenizer.ggml.{}_token_id", key)));
    // 4294967295 means that there is no such token
    const bool is_token = id && *id >= 0 && *id < static_cast<double>(tokens.size());
    if (is_token) g.eos_ids.push_back(static_cast<std::int32_t>(*id));
  }
  TRY(const auto types, m.numbers("tokenizer.ggml.token_type"));
  constexpr double kControl = 3;
  for (std::size_t id = 0; id < std::min(tokens.size(), types.size()); ++id)
    if (types[id] == kControl && std::ranges::find(kEndNames, tokens[id]) != kEndNames.end())
      g.eos_ids.push_back(static_cast<std::int32_t>(id));
  return g;
}

Result<GenerationConfig> read_directory(const std::string& directory) {
  TRY(const boost::json::object generation, read_object(directory, "generation_config.json"));
  TRY(const boost::json::object config, read_object(directory, "config.json"));
  GenerationConfig g;
  g.sampling = generation;
  TRY_VOID(add_tokens(generation, "eos_token_id", g.eos_ids));
  TRY_VOID(add_tokens(config, "eos_token_id", g.eos_ids));
  if (g.eos_ids.empty() && in_mistral_format(directory)) g.eos_ids = {kMistralEnd};
  TRY_VOID(add_tokens(generation, "suppress_tokens", g.suppress_tokens));
  TRY_VOID(add_tokens(generation, "begin_suppress_tokens", g.begin_suppress_tokens));
  TRY(g.decoder_start_token_id, integer(generation, "decoder_start_token_id"));
  TRY(g.forced_bos_token_id, integer(generation, "forced_bos_token_id"));
  const value* multilingual = generation.if_contains("is_multilingual");
  g.multilingual = multilingual == nullptr || !multilingual->is_bool() || multilingual->get_bool();
  return g;
}

}  // namespace

Result<GenerationConfig> load_generation_config(const std::string& path) {
  TRY(GenerationConfig g, is_gguf(path) ? read_gguf(path) : read_directory(path));
  std::ranges::sort(g.eos_ids);
  g.eos_ids.erase(std::ranges::unique(g.eos_ids).begin(), g.eos_ids.end());
  return g;
}

}  // namespace octavo
