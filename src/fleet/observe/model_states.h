// Reads the models of a server with many models from its /metrics page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::fleet {

struct ModelState {
  std::string name;
  bool loaded = false;
  bool waiting = false;  // requests wait until the model is loaded
  double weight_bytes = 0;
  double cache_bytes = 0;  // size of the model's KV cache; 0: it has no KV cache
  double last_use = 0;     // seconds since 1970; 0: never
  double loads = 0;
};

// Returns an empty list if the server has only one model.
std::vector<ModelState> read_model_states(std::string_view page);

}  // namespace octavo::fleet
