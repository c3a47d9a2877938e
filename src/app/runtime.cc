#include "app/runtime.h"

#include <filesystem>
#include <utility>

#include "app/engine_flags.h"
#include "app/load_tokenizer.h"
#include "app/progress.h"
#include "base/log.h"
#include "model/generation_config.h"

namespace octavo {
namespace {

Result<std::optional<ChatTemplate>> compile(std::string_view source, const TokenizerConfig& config) {
  if (source.empty()) return std::nullopt;
  TRY(ChatTemplate compiled, ChatTemplate::compile(source, config.special_tokens));
  return compiled;
}

Result<> load_chat_templates(const RuntimeOptions& options, Runtime& runtime) {
  const TokenizerConfig& config = runtime.tokenizer->config();
  if (!options.chat_template_file.empty()) {
    TRY(const std::string source,
        read_text_file(options.chat_template_file, ChatTemplateLimits{}.source_bytes));
    TRY(runtime.chat_template, compile(source, config));
    return {};
  }
  TRY(runtime.chat_template, compile(config.chat_template(false), config));
  if (config.chat_template(true) != config.chat_template(false)) {
    TRY(runtime.tool_template, compile(config.chat_template(true), config));
  }
  return {};
}

openai::GenerationDefaults defaults_of(const GenerationConfig& config) {
  return {.temperature = config.temperature,
          .top_p = config.top_p,
          .top_k = config.top_k,
          .min_p = config.min_p,
          .repetition_penalty = config.repetition_penalty,
          .max_tokens = config.max_new_tokens};
}

// A model whose logits are fewer than its tokens could be asked about ids that do not exist.
Result<> check_vocabulary(const Tokenizer& tokenizer, int vocab_size) {
  if (tokenizer.vocab_size() <= vocab_size) return {};
  return field_failure("tokenizer", ErrorCode::corrupt,
                       "the tokenizer has {} tokens, the model's vocabulary {}", tokenizer.vocab_size(),
                       vocab_size);
}

// How the model writes tool calls and thoughts.
Result<> set_parsers(const RuntimeOptions& options, const Tokenizer& tokenizer, ServeOptions& serve) {
  if (!options.tool_call_parser.empty()) {
    TRY(serve.rules.tool_dialect, openai::tool_dialect_of(options.tool_call_parser, tokenizer));
    serve.tool_tokens = openai::tool_tokens(*serve.rules.tool_dialect, tokenizer);
  }
  if (!options.reasoning_parser.empty()) {
    TRY(serve.rules.reasoning, openai::reasoning_rule(options.reasoning_parser, tokenizer));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Runtime>> start_runtime(RuntimeOptions options) {
  const bool demo = options.engine.model_dir.empty();
  if (demo) {
    TRY(options.engine.model_dir, demo_model_dir());
  }
  const std::string& dir = options.engine.model_dir;
  auto runtime = std::make_unique<Runtime>();
  TRY(Tokenizer tokenizer, load_tokenizer(dir));
  runtime->tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  TRY_VOID(load_chat_templates(options, *runtime));
  TRY_VOID(set_parsers(options, *runtime->tokenizer, options.serve));
  TRY(const GenerationConfig generation, load_generation_config(dir));

  ProgressBar bar("loading " + dir, "GB", 1e9);
  TRY(runtime->loaded,
      load_engine(options.engine, [&](std::size_t done, std::size_t all) { bar.show(done, all); }));
  bar.finish();
  const LoadedEngine& loaded = runtime->loaded;
  TRY_VOID(check_vocabulary(*runtime->tokenizer, loaded.spec.vocab));

  ServeOptions& serve = options.serve;
  serve.eos_ids = generation.eos_ids;
  serve.model_root = dir;
  serve.rules.model_names = options.served_model_names;
  if (serve.rules.model_names.empty()) serve.rules.model_names = {demo ? "demo" : dir};
  serve.rules.limits.vocab_size = loaded.spec.vocab;
  serve.rules.limits.max_logprobs = options.engine.max_logprobs;
  serve.rules.max_model_len = loaded.max_model_len;
  serve.rules.priority_scheduling = options.engine.policy == Policy::priority;
  if (options.model_sampling_defaults) serve.rules.defaults = defaults_of(generation);
  runtime->service = std::make_shared<Service>(
      *loaded.engine, *runtime->tokenizer, runtime->chat_template ? &*runtime->chat_template : nullptr,
      runtime->tool_template ? &*runtime->tool_template : nullptr, std::move(serve));
  return runtime;
}

}  // namespace octavo
