// Reads the models of `octavo serve --models`.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

// A model of the list.
struct ListedModel {
  std::vector<std::string> flags;  // arguments of `octavo serve`; one of them is --model
  bool pinned = false;
  bool preload = false;
  int min_idle_s = 0;
  int idle_timeout_s = 0;  // 0: never
};

// path: a YAML file with a list `models`, or a folder. Each entry of the list has flags of `octavo serve`,
// and the keys `pinned`, `preload`, `min-idle` and `idle-timeout`. The models of a folder are its subfolders
// with a config.json and its files *.gguf. Returns an error on "models".
Result<std::vector<ListedModel>> read_models(const std::string& path);

// Returns the model of a name on the command line.
ListedModel listed_model(const std::string& name);

}  // namespace octavo
