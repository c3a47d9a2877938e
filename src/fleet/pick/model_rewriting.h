// Replaces the model's name in a request, and restores it in the answer.
#pragma once

#include <string>
#include <string_view>

namespace octavo::fleet {

// Returns the body with each top-level field "model" set to `model`. Other bytes do not change. body: a valid
// JSON object.
std::string with_model(std::string_view body, std::string_view model);

// Restores the model's name in an answer, in the forms "model":"x" and "model": "x".
class ModelRestorer {
 public:
  ModelRestorer() = default;  // changes nothing
  ModelRestorer(std::string_view sent, std::string_view asked);

  bool active() const { return !patterns_[0].empty(); }
  // Returns the bytes to forward for the next piece. Holds back the end of the piece if a model's name may
  // begin there, except at the last piece.
  std::string push(std::string_view piece, bool last);

 private:
  std::string patterns_[2], replacements_[2];
  std::string kept_;
};

}  // namespace octavo::fleet
