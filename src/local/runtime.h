// A model that is ready for requests: engine, tokenizer, chat template and the rules for requests.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <optional>
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

// An adapter of --lora-modules.
struct LoraModule {
  std::string name;
  std::string path;
  std::string base_model_name{};  // name of the base model in the list of models; "": the model's name
};

// Selection of a video's frames; nullopt: the flag is not set.
struct VideoFrames {
  std::optional<int> number{};  // number of frames, evenly spaced; 0: all
  std::optional<double> fps{};  // maximum frames per second; for a list of images, its frame rate
};

// The engines of one server, in separate processes.
struct EngineGroup {
  bool elastic = false;  // the number of engines can change at run time
  int most = 64;         // maximum number of engines, if elastic
  int elsewhere = 0;     // number of engines on other hosts; this host has the engines from first_index
  std::string meeting_address = "127.0.0.1";  // address to which engines on other hosts connect
  int meeting_port = 29'550;
};

// Options of a subcommand, including those of its engine.
struct SamplingDefaults {
  // "auto": those of the model; "vllm": OpenAI's; or a folder with a generation_config.json
  std::string source = "auto";
  boost::json::object overrides{};  // fields that replace those of the source
};

struct RuntimeOptions {
  EngineOptions engine;  // the model is the name that the user gave
  HubFlags hub;
  std::vector<std::string> served_model_names;  // if empty: the model's name as the user gave it
  std::string tokenizer;                        // path of a tokenizer; "": the model's tokenizer
  std::string chat_template;                    // file, or text of a template; "": the model's template
  std::string tool_call_parser;  // parser for tool_choice `auto`; "auto": from the chat template; "" or
                                 // "none": no parser
  std::string reasoning_parser;  // "auto": from the chat template; "" or "none": disabled
  ReasoningConfig reasoning_config;
  std::vector<LoraModule> lora_modules;
  std::string lora_folder;                  // folder of adapters that are loaded on demand; "": no folder
  std::vector<std::string> engine_command;  // command of the engine's process; empty: the engine runs in
                                            // this process
  std::string engine_program = "/proc/self/exe";
  std::function<void()> model_found{};  // called when the model's files exist, before they are loaded
  EngineGroup engines;
  bool sleep_mode = false;                    // an engine in this process supports sleep
  boost::json::object mm_processor_kwargs{};  // replaces values of the model's image processor
  RecordOptions record{};
  VideoFrames video_frames{};  // replaces values of the model's video processor
  SamplingDefaults sampling_defaults{};
  ServeOptions serve;  // `rules` and `eos_ids` are set at the start
};

// Members refer to each other. They are destroyed from last to first, but the engine is first, because it
// uses the service.
struct Runtime {
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::optional<ChatTemplate> tool_template;
  std::unique_ptr<EngineClient> engine;
  std::shared_ptr<Service> service;

  ~Runtime() {
    if (service) service->step_trace.close();
    engine.reset();
  }
};

// Returns the options of the connection between this host and the engines of other hosts. Called when the
// model has been found. Errors: the model cannot be read.
Result<remote::EngineMeetingOptions> meeting_of(const RuntimeOptions& options);

// Finds the model (find_model) and loads everything. On a terminal, a slow load shows a progress bar.
Result<std::unique_ptr<Runtime>> start_runtime(RuntimeOptions options);

}  // namespace octavo
