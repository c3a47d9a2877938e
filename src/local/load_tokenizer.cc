#include "local/load_tokenizer.h"

#include <malloc.h>

#include <algorithm>

#include "base/log.h"
#include "text/gguf_tokenizer.h"
#include "weights/gguf.h"

namespace octavo {
namespace {

// Reads "tokenizer.chat_template" and variants such as "tokenizer.chat_template.tool_use".
Result<std::vector<NamedTemplate>> chat_templates(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  std::vector<NamedTemplate> templates;
  for (const std::string_view key : metadata.keys(kKey)) {
    const std::string_view rest = key.substr(kKey.size());
    if (!rest.empty() && !rest.starts_with('.')) continue;
    TRY(const auto source, metadata.text(key));
    templates.push_back({rest.empty() ? "default" : std::string(rest.substr(1)), std::string(*source)});
  }
  return templates;
}

Result<GgufVocabulary> vocabulary_of(const GgufMetadata& metadata) {
  const auto key = [](std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); };
  GgufVocabulary v;
  // Returns the id of a special token. Files may have 4294967295 or another invalid id for a token that does
  // not exist.
  const auto id = [&](std::string_view name) -> Result<std::optional<std::int64_t>> {
    TRY(const auto given, metadata.number(key(name)));
    if (!given) return std::nullopt;
    if (*given >= 0 && *given < static_cast<double>(v.tokens.size())) return static_cast<std::int64_t>(*given);
    log_warning("{}: {} is {:.0f}, but there are only {} tokens: this special token is ignored",
                metadata.what(), key(name), *given, v.tokens.size());
    return std::nullopt;
  };
  TRY(const auto model, metadata.text(key("model")));
  TRY(const auto pre, metadata.text(key("pre")));
  v.model = model.value_or("");
  v.pre = pre.value_or("");
  if (v.model == "gpt2" && v.pre.empty())
    log_warning("{}: tokenizer.ggml.pre is missing: \"default\" is used, which may not be the model's",
                metadata.what());
  TRY(v.tokens, metadata.texts(key("tokens")));
  TRY(v.types, metadata.numbers(key("token_type")));
  TRY(v.merges, metadata.texts(key("merges")));
  if ((v.model == "gpt2" || v.model == "gemma4") && v.merges.empty())
    return failure(ErrorCode::corrupt,
                   "{}: tokenizer.ggml.merges is missing or empty: without merges, each byte of a text would "
                   "be a token: convert the model again",
                   metadata.what());
  TRY(v.scores, metadata.numbers(key("scores")));
  TRY(v.special.bos, id("bos_token_id"));
  TRY(v.special.eos, id("eos_token_id"));
  TRY(v.special.unknown, id("unknown_token_id"));
  TRY(v.special.padding, id("padding_token_id"));
  TRY(v.special.classifier, id("cls_token_id"));
  TRY(v.special.separator, id("seperator_token_id"));  // the spelling in GGUF files
  TRY(v.lowercase, metadata.boolean(key("normalizer.lowercase")));
  TRY(v.strip_accents, metadata.boolean(key("normalizer.strip_accents")));
  TRY(v.add_bos, metadata.boolean(key("add_bos_token")));
  TRY(v.add_eos, metadata.boolean(key("add_eos_token")));
  TRY(v.add_separator, metadata.boolean(key("add_sep_token")));
  TRY(v.add_space_prefix, metadata.boolean(key("add_space_prefix")));
  TRY(v.single_spaces, metadata.boolean(key("remove_extra_whitespaces")));
  TRY(const std::vector<double> charsmap, metadata.numbers(key("precompiled_charsmap")));
  for (const double byte : charsmap) v.charsmap += static_cast<char>(static_cast<int>(byte));
  TRY(v.chat_templates, chat_templates(metadata));
  return v;
}

Result<Tokenizer> read_gguf(const std::string& path) {
  TRY(const Gguf gguf, Gguf::open(path));
  TRY(const GgufVocabulary vocabulary, vocabulary_of(gguf.metadata));
  auto tokenizer = tokenizer_of(vocabulary);
  if (!tokenizer) tokenizer.error().message = fmt::format("{}: {}", path, tokenizer.error().message);
  return tokenizer;
}

}  // namespace

Result<Tokenizer> load_tokenizer(const std::string& path) {
  auto tokenizer = is_gguf(path) ? read_gguf(path) : Tokenizer::load(path);
  // returns freed memory to the operating system before the weights are loaded
  malloc_trim(0);
  return tokenizer;
}

void add_eos_token(const Tokenizer& tokenizer, std::vector<std::int32_t>& eos_ids) {
  const auto id = tokenizer.id_of(tokenizer.config().special_token("eos_token"));
  if (!id) return;
  const auto at = std::ranges::lower_bound(eos_ids, *id);
  if (at == eos_ids.end() || *at != *id) eos_ids.insert(at, *id);
}

}  // namespace octavo
