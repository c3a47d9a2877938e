// Replaces the model's name in a request, and restores the client's name in the response.
#pragma once

#include <string>
#include <string_view>

namespace octavo::fleet {

// Returns the body with each top-level field "model" set to `model`. All other bytes stay. `body` must be a
// valid JSON object.
std::string with_model(std::string_view body, std::string_view model);

// Restores the model's name in a response, in the forms "model":"x" and "model": "x".
class ModelRestorer {
 public:
  ModelRestorer() = default;
  ModelRestorer(std::string_view sent, std::string_view requested);

  bool active() const { return !patterns_[0].empty(); }
  // Returns the bytes to forward for the next piece. If the piece ends with a possible beginning of the
  // model's name, this end is held back until the next call, unless `last` is set.
  std::string push(std::string_view piece, bool last);

 private:
  std::string patterns_[2], replacements_[2];
  std::string kept_;
};

}  // namespace octavo::fleet
