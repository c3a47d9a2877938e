// Loads everything that a server needs for a model: engine, tokenizer, chat template and rules for
// requests. `octavo serve` and the bindings use it.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine_options.h"
#include "local/find_model.h"
#include "local/reasoning_config.h"
#include "model/generation_config.h"
#include "record/record_log.h"
#include "remote/engine_meeting.h"
#include "serve/service.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

struct LoraModule {
  std::string name;
  std::string path;
  // name of the base model in the list of models; "": the model's name
  std::string base_model_name{};
};

// Folder of adapters that are loaded on demand.
struct LoraFolder {
  std::string path{};       // "": none
  std::string base_name{};  // one more name that the base model may have in the files of adapters; "": none
};

// The engines of one server in separate processes.
struct EngineGroup {
  bool elastic = false;  // engines can be added and removed at run time
  int most = 64;         // maximum number of engines, if elastic
  // number of engines on other hosts; this host has the engines from first_index on
  int elsewhere = 0;
  std::string meeting_address = "127.0.0.1";  // address to which engines on other hosts connect
  int meeting_port = 29'550;
};

struct SamplingDefaults {
  // source of default sampling parameters: "auto": the model's files; "vllm": OpenAI's defaults; or a folder
  // with a generation_config.json
  std::string source = "auto";
  boost::json::object overrides{};  // fields that replace those of the source
};

struct RuntimeEvents {
  // called when the model's files are on the disk, before they are loaded
  std::function<void()> model_found{};
  // called, on any thread, when a request or command arrives while the engine is unloaded
  std::function<void()> requested{};
  // ends start_runtime() with an error while an engine process loads the model
  std::stop_token stop{};
};

// Options of a subcommand that runs a model.
// The program that an engine process runs.
struct EngineProgram {
  std::vector<std::string> command{};  // command line; empty: the engine runs in this process
  std::string path = "/proc/self/exe";
};

struct RuntimeOptions {
  EngineOptions engine;  // the model has the name that the user gave
  HubFlags hub;
  // names of the model in the API; empty: the name that the user gave
  std::vector<std::string> served_model_names;
  std::string tokenizer;                        // path; "": that of the model
  std::string chat_template;                    // path or text; "": that of the model
  // for tool_choice `auto`; "auto": chosen by the chat template; "" or "none": no parser
  std::string tool_call_parser;
  // "auto": chosen by the chat template; "" or "none": disabled
  std::string reasoning_parser;
  ReasoningConfig reasoning_config;
  std::vector<LoraModule> lora_modules;
  LoraFolder lora_folder{};
  EngineProgram program{};
  RuntimeEvents events{};
  EngineGroup engines;
  // whether the engine in this process supports sleep
  bool sleep_mode = false;
  // overrides values of the model's image processor
  boost::json::object mm_processor_kwargs{};
  RecordOptions record{};
  MediaIo media_io{};  // replaces values of the model's image and video processors
  SamplingDefaults sampling_defaults{};
  ServeOptions serve;  // `rules` and `eos_ids` are set at the start
};

// Members refer to each other. Members are destroyed from last to first, except that the engine is destroyed
// first, because it uses the service.
struct Runtime {
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::optional<ChatTemplate> tool_template;
  std::unique_ptr<EngineClient> engine;
  std::shared_ptr<Service> service;

  ~Runtime() {
    if (service) service->views.steps.close();
    engine.reset();
  }
};

// Returns the names that the base model may have in the files of an adapter.
std::vector<std::string> base_names(const RuntimeOptions& options);

// Options for the connections of engines on other hosts. Call it when the model's path is known. Returns an
// error if the model cannot be read.
Result<remote::EngineMeetingOptions> meeting_of(const RuntimeOptions& options);

// Finds the model and loads everything. A slow load shows a progress bar on a terminal.
Result<std::unique_ptr<Runtime>> start_runtime(RuntimeOptions options);

}  // namespace octavo
