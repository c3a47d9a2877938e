#include "local/pooler_config.h"

#include <cmath>
#include <string>

#include "openai/request_fields.h"

namespace octavo {
namespace {

constexpr int kLongestMax = 1 << 24;  // tokens in the longest text that is processed in chunks
constexpr int kDimensionsMax = 1 << 20;
constexpr int kTokenMax = 1 << 30;

Result<> read_type(openai::Fields& f, std::string& out) {
  for (const std::string_view name : {"pooling_type", "seq_pooling_type", "tok_pooling_type"}) {
    std::string type;
    TRY_VOID(f.text(name, type));
    if (type.empty()) continue;
    if (!out.empty())
      return invalid(
          name, "is a second pooling type: give one of pooling_type, seq_pooling_type and tok_pooling_type");
    if (type != "CLS" && type != "LAST" && type != "MEAN" && type != "ALL" && type != "STEP")
      return field_failure(std::string(name), ErrorCode::unsupported,
                           "is \"{}\"; supported are CLS, LAST, MEAN, ALL and STEP", type);
    out = type;
  }
  return {};
}

Result<> read_chunks(openai::Fields& f, PoolingRules& rules) {
  bool chunked = false;
  std::optional<int> longest;
  TRY_VOID(f.boolean("enable_chunked_processing", chunked));
  TRY_VOID(f.integer("max_embed_len", longest, 1, kLongestMax));
  if (chunked != longest.has_value())
    return invalid(chunked ? "max_embed_len" : "enable_chunked_processing",
                   "enable_chunked_processing and max_embed_len (maximum number of tokens of a text) must be "
                   "given together");
  rules.longest = longest.value_or(0);
  return {};
}

// Type STEP is type ALL with the scores of only some tokens.
Result<> read_steps(openai::Fields& f, std::string& type, PoolingRules& rules) {
  const bool steps = type == "STEP";
  if (steps) type = "ALL";
  for (const char* name : {"step_tag_id", "returned_token_ids"})
    if (!steps && f.any(name) != nullptr) return invalid(name, "needs \"pooling_type\": \"STEP\"");
  std::optional<int> tag;
  TRY_VOID(f.integer("step_tag_id", tag, 0, kTokenMax));
  rules.step_tag = tag;
  TRY_VOID(f.integers("returned_token_ids", rules.returned));
  return {};
}

Result<> read_calibration(openai::Fields& f, PoolingRules& rules) {
  double mean = 0, sigma = 1, scale = 1;
  TRY_VOID(f.number("logit_bias", mean));
  TRY_VOID(f.number("logit_mean", mean));
  TRY_VOID(f.number("logit_scale", scale));
  if (scale != 0) sigma = 1 / scale;
  TRY_VOID(f.number("logit_sigma", sigma));
  if (scale == 0 || sigma == 0 || !std::isfinite(static_cast<float>(sigma)))
    return invalid(scale == 0 ? "logit_scale" : "logit_sigma", "must not be 0");
  rules.score_mean = static_cast<float>(mean);
  rules.score_sigma = static_cast<float>(sigma);
  return {};
}

}  // namespace

Result<> read_pooler_config(const boost::json::object& config, RuntimeOptions& options) {
  openai::Fields f(config);
  PoolingRules rules;
  std::string type;
  TRY_VOID(read_type(f, type));
  std::string task;
  TRY_VOID(f.text("task", task));
  rules.task = task_named(task);
  if (!task.empty() && !rules.task) return invalid("task", "must be {}, got \"{}\"", kTaskNames, task);
  // `normalize` is the old name of use_activation.
  for (const std::string_view name : {"normalize", "use_activation"}) {
    if (f.any(name) == nullptr) continue;
    bool activated = true;
    TRY_VOID(f.boolean(name, activated));
    rules.activated = activated;
  }
  TRY_VOID(f.integer("dimensions", rules.dimensions, 1, kDimensionsMax));
  TRY_VOID(read_chunks(f, rules));
  TRY_VOID(read_calibration(f, rules));
  TRY_VOID(read_steps(f, type, rules));
  for (const std::string& name : f.unread()) return invalid(name, "there is no such field");
  options.engine.model.pooling_type = type;
  options.serve.pooling = rules;
  return {};
}

}  // namespace octavo
