#include "local/runtime.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <future>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "base/log.h"
#include "base/quoted_text.h"
#include "dist/tcp_socket.h"
#include "engine/execute/ranks.h"
#include "engine/load/load.h"
#include "local/classifier_tokens.h"
#include "local/engine_flags.h"
#include "local/grammar_vocabulary.h"
#include "local/load_tokenizer.h"
#include "local/progress.h"
#include "local/recorded_engine.h"
#include "local/reloadable_engine.h"
#include "model/generation_config.h"
#include "model/image_processor.h"
#include "model/sentence_transformers.h"
#include "model/sound_processor.h"
#include "remote/data_parallel.h"
#include "remote/engine_process.h"
#include "serve/adapter_folder.h"
#include "serve/openai/find_parsers.h"
#include "weights/checkpoint.h"

namespace octavo {
namespace {

Result<std::optional<ChatTemplate>> compile(std::string_view source, const TokenizerConfig& config) {
  if (source.empty()) return std::nullopt;
  TRY(ChatTemplate compiled, ChatTemplate::compile(source, config.special_tokens));
  return compiled;
}

// given: path of a file, or the text of a template on one line.
Result<std::string> template_source(const std::string& given) {
  std::error_code ignored;
  if (!std::filesystem::exists(given, ignored) && given.find_first_of("{}") != std::string::npos)
    return given;
  auto source = read_text_file(given, ChatTemplateLimits{}.source_bytes);
  if (!source) source.error().field = "chat_template";
  return source;
}

Result<> load_chat_templates(const RuntimeOptions& options, Runtime& runtime) {
  const TokenizerConfig& config = runtime.tokenizer->config();
  if (!options.chat_template.empty()) {
    TRY(const std::string source, template_source(options.chat_template));
    TRY(runtime.chat_template, compile(source, config));
    return {};
  }
  // Compiles the model's own template. If it is invalid, only chat is disabled, and the server starts.
  const auto own = [&](bool tools, std::optional<ChatTemplate>& compiled) {
    auto made = compile(config.chat_template(tools), config);
    if (made)
      compiled = *std::move(made);
    else
      log_warning("chat requests are refused, since the model's chat template cannot be used: {}",
                  made.error().message);
  };
  own(false, runtime.chat_template);
  if (config.chat_template(true) != config.chat_template(false)) own(true, runtime.tool_template);
  return {};
}

Result<openai::GenerationDefaults> generation_defaults(const RuntimeOptions& options,
                                                       const GenerationConfig& models) {
  boost::json::object config;
  if (options.sampling_defaults.source == "auto") {
    config = models.sampling;
  } else if (options.sampling_defaults.source != "vllm") {
    if (!std::filesystem::is_directory(options.sampling_defaults.source))
      return field_failure("generation_config", ErrorCode::not_found, "{} is no folder",
                           options.sampling_defaults.source);
    TRY(const GenerationConfig file, load_generation_config(options.sampling_defaults.source));
    config = file.sampling;
  }
  for (const auto& [name, value] : options.sampling_defaults.overrides)
    if (!value.is_null()) config[name] = value;
  auto defaults = openai::generation_defaults(config);
  if (!defaults)
    return field_failure(defaults.error().field, ErrorCode::corrupt, "generation_config.json: {}",
                         defaults.error().message);
  return defaults;
}

// Some fine-tuned models have tokens without a logit, such as an added padding token. Requests are checked
// against the model's vocabulary.
void warn_of_surplus_tokens(const Tokenizer& tokenizer, int vocab_size) {
  if (tokenizer.vocab_size() <= vocab_size) return;
  log_warning(
      "the tokenizer has {} tokens, the model has {}: prompts with a token id of {} or more are refused",
      tokenizer.vocab_size(), vocab_size, vocab_size);
}

// Checks that the draft model has the model's tokenizer. Otherwise almost no draft token would be accepted.
Result<> check_draft_tokenizer(const Tokenizer& tokenizer, const std::string& draft_model) {
  constexpr std::string_view kField = "speculative_config";
  auto loaded = load_tokenizer(draft_model);
  if (!loaded) {
    if (loaded.error().code != ErrorCode::not_found) return std::unexpected(loaded.error());
    log_warning("the draft model has no tokenizer: the server assumes that it uses the model's");
    return {};
  }
  const Tokenizer& own = *loaded;
  if (own.vocab_size() != tokenizer.vocab_size())
    return invalid(
        kField,
        "the draft model's tokenizer has {} tokens, the model's has {}: both must use the same tokenizer",
        own.vocab_size(), tokenizer.vocab_size());
  for (TokenId id = 0; id < own.vocab_size(); ++id)
    if (own.token(id) != tokenizer.token(id))
      return invalid(kField,
                     "token {} is {} in the draft model's tokenizer and {} in the model's: both must use the "
                     "same tokenizer",
                     id, quoted_text(own.token(id).value_or("")),
                     quoted_text(tokenizer.token(id).value_or("")));
  return {};
}

struct Parsers {
  std::string_view tool, reasoning;
};

// Returns the parsers of the options or, for "auto", those that fit the chat template.
Result<Parsers> choose_parsers(const RuntimeOptions& options, const Tokenizer& tokenizer,
                               const ChatTemplate* chat_template) {
  const std::string& configured = options.reasoning_config.parser;
  Parsers chosen{options.tool_call_parser, configured.empty() ? options.reasoning_parser : configured};
  const bool finds_tool = chosen.tool == "auto", finds_reasoning = chosen.reasoning == "auto";
  std::string text(tokenizer.config().chat_template(true));
  if (!options.chat_template.empty()) {
    TRY(text, template_source(options.chat_template));
  }
  std::string found;
  const auto note = [&](std::string_view flag, const openai::FoundParser& parser) {
    found +=
        fmt::format("{}{} {}", found.empty() ? "" : ", ", flag, parser.name.empty() ? "none" : parser.name);
    if (!parser.name.empty()) found += fmt::format(" (it has {})", parser.mark);
    return parser.name;
  };
  if (finds_tool)
    chosen.tool = note("--tool-call-parser", openai::find_tool_parser(text, tokenizer, chat_template));
  if (finds_reasoning)
    chosen.reasoning =
        note("--reasoning-parser", openai::find_reasoning_parser(text, tokenizer, chosen.tool));
  if (!found.empty()) log_info("chosen from the chat template: {}", found);
  if (chosen.tool == "none") chosen.tool = "";
  if (chosen.reasoning == "none") chosen.reasoning = "";
  return chosen;
}

// `chat_template` is that of requests with tools; null if the model has none.
Result<> set_parsers(const RuntimeOptions& options, const Tokenizer& tokenizer,
                     const ChatTemplate* chat_template, ServeOptions& serve) {
  TRY(const Parsers parsers, choose_parsers(options, tokenizer, chat_template));
  if (!parsers.tool.empty()) {
    TRY(serve.rules.tool_dialect, openai::tool_dialect_of(parsers.tool, tokenizer));
    serve.tool_tokens = openai::tool_tokens(*serve.rules.tool_dialect, tokenizer);
    serve.rules.special_tokens = openai::special_tokens(tokenizer);
  }
  if (serve.rules.tool_dialect && serve.rules.tool_dialect->name != "hermes" && chat_template &&
      !chat_template->habits().reads_tools)
    log_warning(
        "the chat template does not print the tools of requests: --tool-call-parser {} reads calls, but the "
        "model "
        "knows only tools that its messages describe; use a template with tools (--chat-template) or "
        "--tool-call-parser hermes",
        parsers.tool);
  const std::string_view own = openai::own_reasoning_parser(tokenizer);
  if (const std::string_view parser = parsers.reasoning.empty() ? own : parsers.reasoning; !parser.empty()) {
    TRY(serve.rules.reasoning, openai::reasoning_rule(parser, tokenizer));
    // Templates of models without reasoning may contain the same tokens. So reasoning starts only if the
    // prompt or the output contains its start token.
    if (options.reasoning_parser == "auto" && options.reasoning_config.parser.empty())
      serve.rules.reasoning->from_start = false;
  }
  const openai::ReasoningRule* const rule = serve.rules.reasoning ? &*serve.rules.reasoning : nullptr;
  TRY_VOID(check_reasoning_config(options.reasoning_config, rule, tokenizer));
  if (serve.rules.tool_dialect && serve.rules.tool_dialect->form == grammar::ToolDialect::Form::harmony &&
      !(serve.rules.reasoning && serve.rules.reasoning->harmony))
    return invalid("tool-call-parser", "{} needs the tokens of gpt-oss and no other --reasoning-parser",
                   parsers.tool);
  return {};
}

remote::EngineProcessOptions process_options(std::vector<std::string> command, const EngineOptions& engine,
                                             int index) {
  command.insert(command.end(), {kEngineIndexFlag, std::to_string(index)});
  std::string file = engine.cache.memory_file;
  if (!file.empty() && index > 0) file += fmt::format(".{}", index);
  return {.command = std::move(command),
          .seed = engine.seed,
          .keeps_cache = engine.cache.survives_engine || !file.empty(),
          .kept_file = std::move(file),
          .sessions = {.sessions_max = engine.sessions.sessions_max, .ttl_s = engine.sessions.ttl_s}};
}

// Allows an engine process to restart with other weights. Not allowed if ranks or engines run on other hosts,
// because they would keep the old weights. Not allowed with shared experts, because other engines need the
// experts of the restarting engine.
void take_other_weights(const RuntimeOptions& options, remote::EngineProcessOptions& process) {
  const EngineOptions& engine = options.engine;
  if (engine.device.executor != "local" || engine.parallel.nodes.count > 1 || engine.parallel.mpi ||
      options.engines.elsewhere > 0 || engine.parallel.shares_experts())
    return;
  process.weights_flag = kWeightsFlag;
  process.check_weights = [engine](const std::string& path) { return check_weights(engine, path); };
}

// Returns a function that starts an engine later, at run time. The engine may use all free memory, and all
// processors except those of earlier engines.
remote::DataParallelClient::Start later_engine(const std::vector<std::string>& command,
                                               const EngineOptions& engine) {
  return [command, engine](int index, int count) -> Result<std::unique_ptr<EngineClient>> {
    remote::EngineProcessOptions one = process_options(command, engine, index);
    one.command.insert(one.command.end(),
                       {"--data-parallel-size", std::to_string(count), kProcessorsFlag, ""});
    return remote::EngineProcess::start(std::move(one));
  };
}

// Returns an error for options that need separate engine processes.
Result<> check_in_process(const RuntimeOptions& options) {
  if (options.engines.elastic)
    return invalid("enable_elastic_ep", "needs engines in separate processes: remove --no-engine-process");
  if (!options.engine.cache.memory_file.empty())
    return invalid("kv_memory_file", "needs an engine in a separate process: remove --no-engine-process");
  if (options.engines.elsewhere > 0)
    return field_failure(
        "data_parallel_size_local", ErrorCode::unsupported,
        "must be equal to --data-parallel-size ({}) for an engine without a separate process",
        options.engine.parallel.data_parallel_size);
  if (const int all = options.engine.parallel.data_parallel_size; all > 1)
    return field_failure("data_parallel_size", ErrorCode::unsupported,
                         "must be 1 for an engine without a separate process, got {}", all);
  return {};
}

// Calls `load_text`, which sets runtime.tokenizer and `generation`, while an engine process loads the model.
Result<std::unique_ptr<EngineClient>> start_engine(const RuntimeOptions& options, const std::string& named,
                                                   const Runtime& runtime, const GenerationConfig& generation,
                                                   const std::function<Result<>()>& load_text) {
  const std::string title = "loading " + named;
  if (!options.program.command.empty()) {
    ProgressBar bar(title, "GB", 1e9);
    const auto progress = [&](std::size_t done, std::size_t all) { bar.show(done, all); };
    std::vector<std::string> command = options.program.command;
    // Overrides the model's name with the path that was found.
    command.insert(command.end(), {"--model", options.engine.model.dir});
    const int engines = options.engine.parallel.data_parallel_size;
    const int all_engines = engines + options.engines.elsewhere;
    const int first_here = options.engines.elsewhere > 0 ? options.engine.first_index : 0;
    const auto is_here = [&](int index) { return index >= first_here && index < first_here + engines; };
    std::shared_ptr<const Socket> expert_port;
    if (options.engine.parallel.shares_experts() && options.engine.parallel.nodes.expert_port == 0) {
      TRY(auto reserved, reserve_port());
      expert_port = std::make_shared<const Socket>(std::move(reserved.first));
      command.insert(command.end(), {kExpertPortFlag, std::to_string(reserved.second)});
    }
    std::shared_ptr<remote::EngineMeeting> meeting;
    if (options.engines.elsewhere > 0) {
      TRY(remote::EngineMeetingOptions meeting_options, meeting_of(options));
      std::set<int> elsewhere;
      for (int index = 0; index < all_engines; ++index)
        if (!is_here(index)) elsewhere.insert(index);
      log_info("waiting at {}:{} for engines {}", options.engines.meeting_address,
               options.engines.meeting_port, fmt::join(elsewhere, ", "));
      TRY(meeting, remote::EngineMeeting::open(std::move(meeting_options), std::move(elsewhere)));
    }
    const auto start =
        [&](int index, const std::function<Result<>()>& meanwhile) -> Result<std::unique_ptr<EngineClient>> {
      remote::EngineProcessOptions one = process_options(command, options.engine, index - first_here);
      one.program = options.program.path;
      if (index == first_here) one.progress = progress;
      if (options.engine.model.late && all_engines == 1) one.first_flag = kLateFlag;
      one.on_several_hosts = options.engine.parallel.nodes.count > 1 || options.engine.parallel.mpi;
      take_other_weights(options, one);
      one.wanted = options.events.requested;
      one.stop = options.events.stop;
      if (!is_here(index)) one.meeting = meeting;
      one.number = index;
      one.shares_experts = options.engine.parallel.shares_experts();
      one.expert_port = expert_port;
      return remote::EngineProcess::start(std::move(one), meanwhile);
    };
    if (all_engines == 1 && !options.engines.elastic) return start(0, load_text);
    TRY_VOID(load_text());
    TRY(auto all,
        remote::DataParallelClient::start(0, all_engines, [&](int index, int) { return start(index, {}); }));
    remote::DataParallelClient::Start more;
    if (options.engines.elastic) more = later_engine(command, options.engine);
    auto client = std::make_unique<remote::DataParallelClient>(
        std::move(all), options.engine.seed, std::move(more), std::max(all_engines, options.engines.most));
    client->set_weights(options.engine.model.dir);
    return client;
  }
  TRY_VOID(check_in_process(options));
  TRY_VOID(load_text());
  const auto load = [engine = options.engine, title, &tokenizer = *runtime.tokenizer,
                     eos_ids = generation.eos_ids]() -> Result<std::unique_ptr<EngineClient>> {
    ProgressBar bar(title, "GB", 1e9);
    return load_engine(
        engine, {.progress = [&](std::size_t done, std::size_t all) { bar.show(done, all); },
                 .vocabulary = [&tokenizer, eos_ids](int vocab_size) {
                   return grammar_vocabulary(tokenizer, eos_ids, vocab_size);
                 }});
  };
  return options.sleep_mode ? ReloadableEngine::start(load) : load();
}

Result<> load_adapter(const LoraModule& module, const Service& service) {
  TRY(const std::string folder, service.options.find_adapter(module.path));
  std::promise<Result<>> loaded;
  service.engine.load_adapter({module.name, folder},
                              [&](Result<> result) { loaded.set_value(std::move(result)); });
  TRY_VOID(loaded.get_future().get());
  service.offer_adapter({.name = module.name, .path = module.path, .parent = module.base_model_name});
  return {};
}

Result<> load_adapters(const RuntimeOptions& options, const Service& service) {
  std::vector<LoraModule> modules = options.lora_modules;
  for (const auto& [kind, folder] : options.engine.lora.by_media) modules.push_back({.name = kind, .path = folder});
  for (const LoraModule& module : modules) {
    if (std::ranges::find(service.options.rules.model_names, module.name) !=
            service.options.rules.model_names.end() ||
        service.adapters->find(module.name))
      return invalid("lora_modules", "two models are named {}", module.name);
    if (Result<> result = load_adapter(module, service); !result) {
      result.error().message = fmt::format("the adapter {}: {}", module.name, result.error().message);
      return result;
    }
  }
  return {};
}

Result<> open_adapter_folder(const RuntimeOptions& options, const Service& service) {
  if (options.lora_folder.path.empty()) return {};
  return AdapterFolder::open(options.lora_folder.path, base_names(options), service);
}

Result<> set_images(const RuntimeOptions& options, const Runtime& runtime, ServeOptions& serve) {
  if (runtime.engine->info().image.tokens == 0) return {};
  TRY(serve.media.images, read_image_processor(options.engine.model.dir, options.mm_processor_kwargs,
                                               options.engine.model.mmproj_file()));
  apply(options.media_io, *serve.media.images);
  serve.rules.images_max = options.engine.media.images;
  if (!serve.media.images->video || runtime.engine->info().image.frames == 0) return {};
  serve.rules.videos_max = options.engine.media.videos;
  return {};
}

Result<> set_prompt_sound(const RuntimeOptions& options, const Runtime& runtime, ServeOptions& serve) {
  const EngineInfo::SoundRule sound = runtime.engine->info().sound;
  if (sound.tokens == 0) return {};
  TRY(const media::MelConfig mel, read_sound_processor(options.engine.model.dir));
  const std::optional<std::string> token = runtime.tokenizer->token(sound.token_id);
  if (!token)
    return field_failure("tokenizer", ErrorCode::corrupt, "the tokenizer has no token {} for audio",
                         sound.token_id);
  serve.media.prompt_sound = {media::LogMel(mel), *token};
  serve.rules.sounds_max = options.engine.media.sounds;
  return {};
}

Result<> set_sound(const GenerationConfig& generation, const Runtime& runtime, const std::string& model_dir,
                   ServeOptions& serve) {
  if (const EngineInfo::SoundRule sound = runtime.engine->info().sound; sound.mels == 0 || sound.tokens > 0)
    return {};
  TRY(const media::MelConfig mel, read_sound_processor(model_dir));
  TRY(serve.media.transcription, sound_rules(*runtime.tokenizer, mel, !generation.multilingual));
  serve.media.transcription->suppress = generation.suppress_tokens;
  serve.media.transcription->begin_suppress = generation.begin_suppress_tokens;
  return {};
}

// Checks the fields of --pooler-config that the server, and not the engine, handles.
Result<> check_pooling(const PoolingRules& rules, const EngineInfo& info) {
  if (info.tasks.default_task == Task::generate) return {};
  if (rules.task && !info.tasks.does(*rules.task))
    return invalid("pooler_config", "the task in this field is not supported by {} models",
                   info.architecture);
  if (rules.dimensions && *rules.dimensions > info.tasks.pooled_size)
    return invalid("pooler_config", "dimensions must be at most {}, got {}", info.tasks.pooled_size,
                   *rules.dimensions);
  for (const int index : rules.returned)
    if (index < 0 || index >= info.tasks.pooled_size)
      return invalid(
          "pooler_config",
          "returned_token_ids contains {}, but each id must be below {}, the number of values per token",
          index, info.tasks.pooled_size);
  if (rules.longest > 0 && info.tasks.default_task != Task::embed)
    return invalid("pooler_config",
                   "enable_chunked_processing works only for models that make one vector of a whole text");
  return {};
}

}  // namespace

std::vector<std::string> base_names(const RuntimeOptions& options) {
  std::vector<std::string> names = options.served_model_names;
  names.insert(names.end(), {options.lora_folder.base_name, options.engine.model.dir});
  return names;
}

Result<remote::EngineMeetingOptions> meeting_of(const RuntimeOptions& options) {
  TRY(std::string identity, hosts_identity(options.engine));
  return remote::EngineMeetingOptions{.address = options.engines.meeting_address,
                                      .port = options.engines.meeting_port,
                                      .identity = std::move(identity)};
}

Result<std::unique_ptr<Runtime>> start_runtime(RuntimeOptions options) {
  if (options.serve.observe.phase_spans && !options.serve.observe.tracer)
    return invalid("collect-detailed-traces", "needs --otlp-traces-endpoint, the collector of the spans");
  const bool bundled = options.engine.model.dir.empty();
  const std::string named = bundled ? "demo" : options.engine.model.dir;
  if (options.lora_folder.base_name.empty()) options.lora_folder.base_name = named;
  TRY_VOID(find_models(options.engine, options.hub));
  const std::string& dir = options.engine.model.dir;
  TRY_VOID(check_model_path(dir));
  if (const std::string file = options.engine.model.mmproj_file(); !file.empty())
    log_info("images are encoded with {}", file);
  if (options.events.model_found) options.events.model_found();
  TRY_VOID(name_classifier_tokens(options.engine, options.tokenizer.empty() ? dir : options.tokenizer));
  auto runtime = std::make_unique<Runtime>();
  GenerationConfig generation;
  const auto load_text = [&]() -> Result<> {
    TRY(Tokenizer tokenizer, load_tokenizer(options.tokenizer.empty() ? dir : options.tokenizer));
    runtime->tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
    if (const auto& speculation = options.engine.speculation;
        speculation && speculation->draft_model() != nullptr)
      TRY_VOID(check_draft_tokenizer(*runtime->tokenizer, speculation->draft_model()->model));
    TRY_VOID(load_chat_templates(options, *runtime));
    const auto& with_tools = runtime->tool_template ? runtime->tool_template : runtime->chat_template;
    TRY_VOID(set_parsers(options, *runtime->tokenizer, with_tools ? &*with_tools : nullptr, options.serve));
    TRY(generation, load_generation_config(dir));
    add_eos_token(*runtime->tokenizer, generation.eos_ids);
    return {};
  };
  TRY(runtime->engine, start_engine(options, named, *runtime, generation, load_text));
  if (!options.record.dir.empty()) {
    TRY(runtime->engine, record_requests(std::move(runtime->engine), options.engine, options.record));
  }
  const EngineInfo info = runtime->engine->info();
  warn_of_surplus_tokens(*runtime->tokenizer, info.vocab_size);

  ServeOptions& serve = options.serve;
  serve.eos_ids = generation.eos_ids;
  serve.model = {.root = bundled ? dir : named, .path = dir};
  HubFlags of_adapters = options.hub;
  of_adapters.revision.clear();
  serve.find_adapter = [of_adapters](const std::string& path) { return find_adapter(path, of_adapters); };
  for (const auto& [kind, folder] : options.engine.lora.by_media) serve.media.adapters.insert(kind);
  serve.features.session_import = options.engine.sessions.imports;
  serve.rules.model_names = options.served_model_names;
  if (serve.rules.model_names.empty()) serve.rules.model_names = {named};
  serve.rules.take_limits(info);
  TRY_VOID(set_images(options, *runtime, serve));
  TRY_VOID(set_prompt_sound(options, *runtime, serve));
  // Requests then contain no media to fetch, so one thread is enough.
  if (!serve.media.images && !serve.media.prompt_sound) serve.threads.fetch = 1;
  TRY(serve.pooling.text_prompts, read_text_prompts(dir));
  serve.pooling.score_template = !options.chat_template.empty();
  TRY_VOID(check_pooling(serve.pooling, info));
  TRY_VOID(set_sound(generation, *runtime, dir, serve));
  serve.admission.max_num_seqs = info.max_num_seqs;
  serve.admission.max_num_queued_reqs = info.max_queued;
  TRY(serve.rules.defaults, generation_defaults(options, generation));
  runtime->service = std::make_shared<Service>(
      *runtime->engine, *runtime->tokenizer, runtime->chat_template ? &*runtime->chat_template : nullptr,
      runtime->tool_template ? &*runtime->tool_template : nullptr, std::move(serve));
  TRY_VOID(runtime->service->metrics.accounts.open());
  TRY_VOID(load_adapters(options, *runtime->service));
  TRY_VOID(open_adapter_folder(options, *runtime->service));
  return runtime;
}

}  // namespace octavo
