// A model that is ready to talk: engine, tokenizer, chat template and the rules for requests.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine_options.h"
#include "local/find_model.h"
#include "model/generation_config.h"
#include "remote/engine_meeting.h"
#include "serve/service.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

// One of --lora-modules.
struct LoraModule {
  std::string name;
  std::string path;
  std::string base_model_name{};  // shown as its parent; "": the model's name
};

// Which frames of videos to use, if set by a flag.
struct VideoFrames {
  std::optional<int> number{};  // frames to use, spread evenly; 0 for all
  std::optional<double> fps{};  // a second, at most; of a list of pictures: how many are a second
};

// The engines of one server, which are processes.
struct EngineGroup {
  bool elastic = false;  // their number can change while they serve
  int most = 64;         // then: so far
  int elsewhere = 0;     // on other hosts; those here are data_parallel_size engines from first_index on
  std::string meeting_address = "127.0.0.1";  // where they come to
  int meeting_port = 29'550;
};

// Options of a subcommand, in addition to the engine's.
struct RuntimeOptions {
  EngineOptions engine;  // its model as a person names it
  HubFlags hub;
  std::vector<std::string> served_model_names;  // if empty, the model as it was named
  std::string tokenizer;                        // path; "": the model's own
  std::string chat_template;                    // a file, or the template itself; "": the model's own
  std::string
      tool_call_parser;  // of tool_choice `auto`; "auto": by the chat template; "", "none": not enabled
  std::string reasoning_parser;  // "auto": by the chat template; "", "none": thoughts are text like any other
  std::vector<LoraModule> lora_modules;         // adapters to load at the start
  std::string lora_folder;                  // of others, which are loaded when a request names them; "": none
  std::vector<std::string> engine_command;  // of an engine's separate process; if empty, it runs in this one
  std::string engine_program = "/proc/self/exe";  // the program of that command
  EngineGroup engines;
  bool sleep_mode = false;                  // an engine in this process can be sent to sleep
  boost::json::object mm_processor_kwargs{};  // overrides values of the model's image processor
  VideoFrames video_frames{};                 // overrides values of its video processor
  // Sampling values where a request says nothing: "auto" (the model's), "vllm" (OpenAI's) or a folder with a
  // generation_config.json; above them the overrides.
  std::string generation_config = "auto";
  boost::json::object generation_overrides{};
  ServeOptions serve;  // rules and eos_ids are filled in
};

// Members refer to each other and are destroyed from last to first: the engine first, while the service still
// exists.
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

// Options for the connection between this host and the engines of other hosts. The model must be found
// already. Error: it cannot be read.
Result<remote::EngineMeetingOptions> meeting_of(const RuntimeOptions& options);

// Finds the model (find_model) and loads everything, with a progress bar when someone watches and it takes
// long.
Result<std::unique_ptr<Runtime>> start_runtime(RuntimeOptions options);

}  // namespace octavo
