#include "model/sentence_transformers.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <filesystem>

#include "model/config.h"
#include "weights/json.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

// A JSON file of one object; an empty one where the file is not there.
Result<Config> read_object(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return Config::of({}, file.filename(), {});
  TRY(boost::json::value tree, read_json_file(file));
  if (!tree.is_object()) return failure(ErrorCode::corrupt, "{}: not an object", file.string());
  return Config::of(std::move(tree.get_object()), file.string(), {});
}

// A folder may hold no path that leads out of it.
bool stays_inside(const fs::path& path) {
  return path.is_relative() && std::ranges::none_of(path, [](const fs::path& part) { return part == ".."; });
}

Result<Pool> read_pooling(const Config& config) {
  struct Mode {
    std::string_view field, name;
    std::optional<Pool> pool;
  };
  constexpr Mode kModes[] = {
      {"pooling_mode_cls_token", "cls", Pool::first},
      {"pooling_mode_mean_tokens", "mean", Pool::mean},
      {"pooling_mode_lasttoken", "lasttoken", Pool::last},
      {"pooling_mode_max_tokens", "max", std::nullopt},
      {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", std::nullopt},
      {"pooling_mode_weightedmean_tokens", "weightedmean", std::nullopt},
  };
  TRY(const std::string named, config.text("pooling_mode", ""));
  std::vector<Mode> asked;
  for (const Mode& mode : kModes) {
    TRY(const bool on, config.boolean(mode.field, false));
    if (named.empty() ? on : named == mode.name) asked.push_back(mode);
  }
  if (asked.size() == 1 && asked[0].pool) return *asked[0].pool;
  return field_failure("pooling_mode", ErrorCode::unsupported,
                       "{}: one way of pooling of cls, mean and lasttoken is supported",
                       config.where("pooling_mode"));
}

}  // namespace

Result<> read_sentence_transformers(const std::string& directory, ModelSpec& spec) {
  const fs::path root(directory);
  std::error_code ignored;
  if (!fs::exists(root / "modules.json", ignored)) return {};
  TRY(const boost::json::value tree, read_json_file(root / "modules.json"));
  if (!tree.is_array()) return failure(ErrorCode::corrupt, "modules.json: not a list");
  Head head;
  for (const boost::json::value& item : tree.get_array()) {
    if (!item.is_object()) return failure(ErrorCode::corrupt, "modules.json: a module is no object");
    const Config module = Config::of(item.get_object(), "modules.json", {});
    TRY(const std::string type, module.text("type"));
    TRY(const fs::path path, module.text("path", ""));
    if (!stays_inside(path)) return invalid("path", "{} leads out of the folder", module.where("path"));
    const std::string name = type.substr(type.rfind('.') + 1);
    if (name == "Transformer") {
      TRY(const Config config, read_object(root / path / "sentence_bert_config.json"));
      TRY(const int longest, config.integer("max_seq_length", {1, 1 << 27}, spec.max_positions));
      spec.max_positions = std::min(spec.max_positions, longest);
    } else if (name == "Pooling") {
      TRY(const Config config, read_object(root / path / "config.json"));
      TRY(head.pool, read_pooling(config));
    } else if (name == "Normalize") {
      head.normalise = true;
    } else {
      return field_failure("type", ErrorCode::unsupported,
                           "modules.json: {}; supported are Transformer, Pooling and Normalize", type);
    }
  }
  if (!spec.head || spec.head->labels.empty()) spec.head = head;
  return {};
}

}  // namespace octavo
