// A model that is ready to talk: engine, tokenizer, chat template and the rules for requests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/load.h"
#include "serve/service.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

// What a subcommand may ask for beyond the engine itself.
struct RuntimeOptions {
  EngineOptions engine;
  std::vector<std::string> served_model_names;  // empty: the model's folder
  std::string chat_template_file;               // "": the model's own
  std::string tool_call_parser;                 // of tool_choice `auto`; "": it is not enabled
  std::string reasoning_parser;                 // "": thoughts are text like any other
  bool model_sampling_defaults = true;          // generation_config.json's, where a request says nothing
  ServeOptions serve;                           // rules and eos_ids are filled in
};

// The parts refer to each other: members are destroyed last to first, the engine while the service still
// stands.
struct Runtime {
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::optional<ChatTemplate> tool_template;
  LoadedEngine loaded;
  std::shared_ptr<Service> service;

  ~Runtime() { loaded.engine.reset(); }
};

// Loads everything, with a progress bar when someone watches and it takes long. With no model named, the demo
// model.
Result<std::unique_ptr<Runtime>> start_runtime(RuntimeOptions options);

}  // namespace octavo
