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

// Reads a JSON file that contains an object. The result is empty if the file is missing.
Result<Config> read_object(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return Config::of({}, file.filename(), {});
  TRY(boost::json::value tree, read_json_file(file));
  if (!tree.is_object())
    return failure(ErrorCode::corrupt, "{}: the file must contain an object", file.string());
  return Config::of(std::move(tree.get_object()), file.string(), {});
}

// Returns whether a relative path stays inside the folder.
bool stays_inside(const fs::path& path) {
  return path.is_relative() && std::ranges::none_of(path, [](const fs::path& part) { return part == ".."; });
}

Result<Pool> read_pooling(const Config& config) {
  struct Mode {
    std::string_view field, name;
    Pool pool;
  };
  constexpr Mode kModes[] = {
      {"pooling_mode_cls_token", "cls", Pool::first},
      {"pooling_mode_mean_tokens", "mean", Pool::mean},
      {"pooling_mode_lasttoken", "lasttoken", Pool::last},
      {"pooling_mode_max_tokens", "max", Pool::max},
      {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", Pool::sum_by_root},
      {"pooling_mode_weightedmean_tokens", "weightedmean", Pool::weighted},
  };
  TRY(const std::string named, config.text("pooling_mode", ""));
  std::vector<Mode> requested;
  for (const Mode& mode : kModes) {
    TRY(const bool on, config.boolean(mode.field, false));
    if (named.empty() ? on : named == mode.name) requested.push_back(mode);
  }
  if (requested.size() == 1) return requested[0].pool;
  return field_failure("pooling_mode", ErrorCode::unsupported,
                       "{}: exactly one way of pooling must be set: cls, lasttoken, max, mean, "
                       "mean_sqrt_len_tokens or weightedmean",
                       config.where("pooling_mode"));
}

Result<std::optional<Activation>> read_activation(const Config& config) {
  TRY(const std::string path, config.text("activation_function", "torch.nn.modules.activation.Tanh"));
  const std::string name = path.substr(path.rfind('.') + 1);
  if (name == "Identity") return std::optional<Activation>();
  if (name == "Tanh") return std::optional(Activation::tanh);
  if (name == "GELU") return std::optional(Activation::gelu);
  if (name == "ReLU") return std::optional(Activation::relu);
  if (name == "SiLU") return std::optional(Activation::silu);
  if (name == "Sigmoid") return std::optional(Activation::sigmoid);
  return field_failure(
      "activation_function", ErrorCode::unsupported,
      "{} is \"{}\", which is not supported: must be Identity, Tanh, GELU, ReLU, SiLU or Sigmoid",
      config.where("activation_function"), path);
}

// Reads a dense layer from its folder. `inputs` is the width of its input.
Result<HeadLayer> read_dense(const Config& config, const std::string& folder, int inputs) {
  TRY_VOID(config.integer("in_features", {inputs, inputs}));
  TRY(const bool residual, config.boolean("use_residual", false));
  if (residual)
    return field_failure("use_residual", ErrorCode::unsupported, "{} is true, but only false is supported",
                         config.where("use_residual"));
  HeadLayer layer{.name = folder + "/linear", .folder = folder};
  TRY(layer.outputs, config.integer("out_features", {1, 1 << 20}));
  TRY(layer.bias, config.boolean("bias", true));
  TRY(layer.activation, read_activation(config));
  return layer;
}

}  // namespace

Result<> read_sentence_transformers(const std::string& directory, ModelSpec& spec) {
  const fs::path root(directory);
  std::error_code ignored;
  if (!fs::exists(root / "modules.json", ignored)) return {};
  TRY(const boost::json::value tree, read_json_file(root / "modules.json"));
  if (!tree.is_array()) return failure(ErrorCode::corrupt, "modules.json: the file must contain a list");
  // Without a pooling module, the output is one vector per token (PyLate).
  Head head{.each_token = true};
  for (const boost::json::value& item : tree.get_array()) {
    if (!item.is_object()) return failure(ErrorCode::corrupt, "modules.json: each module must be an object");
    const Config module = Config::of(item.get_object(), "modules.json", {});
    TRY(const std::string type, module.text("type"));
    TRY(const fs::path path, module.text("path", ""));
    if (!stays_inside(path))
      return invalid("path", "{} names a folder outside of the model's folder", module.where("path"));
    const std::string name = type.substr(type.rfind('.') + 1);
    if (name == "Transformer") {
      TRY(const Config config, read_object(root / path / "sentence_bert_config.json"));
      TRY(const int longest, config.integer("max_seq_length", {1, 1 << 27}, spec.max_positions));
      spec.max_positions = std::min(spec.max_positions, longest);
    } else if (name == "Pooling") {
      TRY(const Config config, read_object(root / path / "config.json"));
      TRY(head.pool, read_pooling(config));
      head.each_token = false;
    } else if (name == "Dense") {
      TRY(const Config config, read_object(root / path / "config.json"));
      const int inputs = head.layers.empty() ? spec.dim : head.layers.back().outputs;
      TRY(head.layers.emplace_back(), read_dense(config, path.string(), inputs));
    } else if (name == "Normalize") {
      head.normalise = true;
    } else {
      return field_failure(
          "type", ErrorCode::unsupported,
          "modules.json: {} is not supported: must be Transformer, Pooling, Dense or Normalize", type);
    }
  }
  // PyLate scales the vectors of tokens to length 1, although no module says so.
  if (head.each_token) head.normalise = true;
  if (!spec.head || spec.head->labels.empty()) spec.head = std::move(head);
  return {};
}

Result<TextPrompts> read_text_prompts(const std::string& directory) {
  const fs::path file = fs::path(directory) / "config_sentence_transformers.json";
  std::error_code ignored;
  TextPrompts prompts;
  if (!fs::exists(file, ignored)) return prompts;
  TRY(const boost::json::value tree, read_json_file(file));
  const auto* fields = tree.if_object();
  const auto* given = fields != nullptr ? fields->if_contains("prompts") : nullptr;
  if (given == nullptr || given->is_null()) return prompts;
  if (!given->is_object()) return failure(ErrorCode::corrupt, "{}: prompts must be an object", file.string());
  for (const auto& [name, prompt] : given->get_object()) {
    if (!prompt.is_string())
      return failure(ErrorCode::corrupt, "{}: prompts must be an object whose values are strings",
                     file.string());
    prompts.emplace(std::string(name), std::string(prompt.get_string()));
  }
  return prompts;
}

}  // namespace octavo
