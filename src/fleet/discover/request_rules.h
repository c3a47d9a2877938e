// What a cluster says of requests: priorities by the name of an objective, and models under other names.
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

// An InferenceModelRewrite: its first rule that matches a model says where requests for it go.
struct ModelRewrite {
  struct Target {
    std::string model = {};
    std::int64_t weight = 1;
  };
  struct Rule {
    std::vector<std::string> models = {};  // exactly one of these; empty: any
    std::vector<Target> targets = {};
  };
  std::string created = {};  // RFC 3339, whose order as text is that of time
  std::string name = {};
  std::vector<Rule> rules = {};
};

struct RequestRules {
  std::map<std::string, int, std::less<>> objectives = {};
  std::vector<ModelRewrite> rewrites = {};  // oldest first

  // The model that a request for `model` is sent as; nothing: as it is. A rule that names the model goes
  // before those for any, then the older resource; among targets by weight, `unit` is drawn from [0, 1).
  std::optional<std::string> rewritten(std::string_view model, double unit) const;
};

// Of the pool `pool`; nothing: it is for another one, or says nothing that can be used.
std::optional<int> objective_priority(const boost::json::object& object, std::string_view pool);
std::optional<ModelRewrite> model_rewrite(const boost::json::object& object, std::string_view pool);

}  // namespace octavo::fleet
