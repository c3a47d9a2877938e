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

// path: a YAML file
//
//   models:
//   - model: org/name       # this and all other names: flags of `octavo serve`
//     served-model-name: chat
//     pinned: true          # never unloaded for another model
//     preload: true         # loaded at the start
//     min-idle: 10          # seconds without requests after which the model counts as idle
//     idle-timeout: 600     # seconds without requests after which the model is unloaded
//
// or a folder whose subfolders with a config.json and files *.gguf are models. Returns an error on "models".
Result<std::vector<ListedModel>> read_models(const std::string& path);

// Returns the model of a name on the command line.
ListedModel listed_model(const std::string& name);

}  // namespace octavo
