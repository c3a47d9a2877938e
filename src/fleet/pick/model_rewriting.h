// Replaces the model's name in a request, and restores it in the answer.
#pragma once

#include <string>
#include <string_view>

namespace octavo::fleet {

// A JSON object's text with another model: the value of each top-level field "model" is `model`, all else
// stays byte for byte. `body` is a valid object.
std::string with_model(std::string_view body, std::string_view model);

// Answers name the model as "model":"x" or "model": "x".
class ModelRestorer {
 public:
  ModelRestorer() = default;  // changes nothing
  ModelRestorer(std::string_view sent, std::string_view asked);

  bool active() const { return !patterns_[0].empty(); }
  // The bytes to forward for the next piece. Keeps back an end that may begin a model's name, except after
  // the last piece.
  std::string push(std::string_view piece, bool last);

 private:
  std::string patterns_[2], replacements_[2];
  std::string kept_;
};

}  // namespace octavo::fleet
