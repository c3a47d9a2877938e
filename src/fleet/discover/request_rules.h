// Rules for requests that a Kubernetes cluster stores: priorities (InferenceObjective) and rewrites of
// model names (InferenceModelRewrite).
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

// An InferenceModelRewrite. The first rule that matches the request's model chooses the new name.
struct ModelRewrite {
  struct Target {
    std::string model = {};
    std::int64_t weight = 1;
  };
  struct Rule {
    std::vector<std::string> models = {};  // model names that match; empty: all names match
    std::vector<Target> targets = {};
  };
  std::string created = {};  // creation time in RFC 3339 format, so that text order is time order
  std::string name = {};
  std::vector<Rule> rules = {};
};

struct RequestRules {
  std::map<std::string, int, std::less<>> objectives = {};
  std::vector<ModelRewrite> rewrites = {};  // oldest first

  // Returns the name to use instead of `model`, or nullopt to keep the name. Rules that contain the name
  // have priority over rules for all names, and then older resources have priority over newer ones. `unit`
  // is a random number in [0, 1) that selects a target by weight.
  std::optional<std::string> rewritten(std::string_view model, double unit) const;
};

// Returns nullopt if the objective is invalid or belongs to a different pool.
std::optional<int> objective_priority(const boost::json::object& object, std::string_view pool);
std::optional<ModelRewrite> model_rewrite(const boost::json::object& object, std::string_view pool);

}  // namespace octavo::fleet
