// Replaces the model's name in a request, and restores it in the answer.
#pragma once

#include <string>
#include <string_view>

namespace octavo::fleet {

// Replaces the value of each top-level field "model" with `model`; all other bytes are unchanged. `body` must
// be a valid JSON object.
std::string with_model(std::string_view body, std::string_view model);

// Restores the model's name in an answer, in the forms "model":"x" and "model": "x".
class ModelRestorer {
 public:
  ModelRestorer() = default;  // makes no changes
  ModelRestorer(std::string_view sent, std::string_view asked);

  bool active() const { return !patterns_[0].empty(); }
  // Returns the bytes to forward for the next piece. Holds back an end that may be the beginning of a model's
  // name, unless the piece is the last one.
  std::string push(std::string_view piece, bool last);

 private:
  std::string patterns_[2], replacements_[2];
  std::string kept_;
};

}  // namespace octavo::fleet
