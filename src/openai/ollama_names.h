// Names of models in requests of Ollama's clients, which also use OpenAI's API.
#pragma once

#include <string_view>

namespace octavo::openai {

// Removes the tag ":latest", which Ollama's clients add to names.
inline std::string_view without_latest(std::string_view model) {
  constexpr std::string_view kTag = ":latest";
  return model.size() > kTag.size() && model.ends_with(kTag) ? model.substr(0, model.size() - kTag.size())
                                                             : model;
}

}  // namespace octavo::openai
