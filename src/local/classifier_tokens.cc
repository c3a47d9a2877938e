#include "local/classifier_tokens.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/quoted_text.h"
#include "engine/option_values.h"
#include "local/load_tokenizer.h"
#include "model/config.h"
#include "weights/gguf.h"

namespace octavo {

Result<> name_classifier_tokens(EngineOptions& options, const std::string& tokenizer) {
  constexpr std::string_view kField = "classifier_from_token";
  if (is_gguf(options.model.dir)) return {};
  TRY(Reading reading, reading_of(options));
  TRY(const Config config, Config::load(options.model.dir, reading.overrides));
  TRY(const std::vector<std::string> words, config.texts(kField));
  if (words.empty() || config.has("classifier_token_ids")) return {};
  TRY(const Tokenizer loaded, load_tokenizer(tokenizer));
  boost::json::array ids;
  for (const std::string& word : words) {
    const std::optional<TokenId> id = loaded.id_of(word);
    if (!id) return invalid(kField, "{} has {}, which is no token", config.where(kField), quoted_text(word));
    ids.emplace_back(*id);
  }
  reading.overrides["classifier_token_ids"] = std::move(ids);
  options.model.hf_overrides = boost::json::serialize(reading.overrides);
  return {};
}

}  // namespace octavo
