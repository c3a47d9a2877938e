// A cluster's rules for requests: priorities (InferenceObjective) and rewrites of model names.
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

// An InferenceModelRewrite: the first rule that matches the request's model chooses the target.
struct ModelRewrite {
  struct Target {
    std::string model = {};
    std::int64_t weight = 1;
  };
  struct Rule {
    std::vector<std::string> models = {};  // model names that match; empty: any model
    std::vector<Target> targets = {};
  };
  std::string created = {};  // time in RFC 3339, so text order is time order
  std::string name = {};
  std::vector<Rule> rules = {};
};

struct RequestRules {
  std::map<std::string, int, std::less<>> objectives = {};
  std::vector<ModelRewrite> rewrites = {};  // oldest first

  // Returns the model name to send instead of `model`; nullopt: the same name. Rules with this name precede
  // rules for any model, then older resources precede newer ones. unit: random number in [0, 1) that selects
  // a target by weight.
  std::optional<std::string> rewritten(std::string_view model, double unit) const;
};

// Returns the priority of an objective; nullopt if it is invalid or belongs to another pool than `pool`.
std::optional<int> objective_priority(const boost::json::object& object, std::string_view pool);
std::optional<ModelRewrite> model_rewrite(const boost::json::object& object, std::string_view pool);

}  // namespace octavo::fleet
