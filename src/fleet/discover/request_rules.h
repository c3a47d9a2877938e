// A cluster's rules for requests: priorities of objectives, and rewrites of model names.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::fleet {

// An InferenceModelRewrite: the first rule that matches a request's model decides its target.
struct ModelRewrite {
  struct Target {
    std::string model = {};
    std::int64_t weight = 1;
  };
  struct Rule {
    std::vector<std::string> models = {};  // matches exactly these models; empty: any model
    std::vector<Target> targets = {};
  };
  std::string created = {};  // time in RFC 3339; sorts like text
  std::string name = {};
  std::vector<Rule> rules = {};
};

struct RequestRules {
  std::map<std::string, int, std::less<>> objectives = {};
  std::vector<ModelRewrite> rewrites = {};  // oldest first

  // The model name to send instead of `model`; nullopt: unchanged. Rules for this model precede rules for all
  // models; then the older resource wins. unit: random in [0, 1), selects a target by weight.
  std::optional<std::string> rewritten(std::string_view model, double unit) const;
};

// Priority of an objective for `pool`; nullopt: the objective is for another pool, or invalid.
std::optional<int> objective_priority(const boost::json::object& object, std::string_view pool);
std::optional<ModelRewrite> model_rewrite(const boost::json::object& object, std::string_view pool);

}  // namespace octavo::fleet
