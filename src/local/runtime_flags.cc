#include "local/runtime_flags.h"

#include <ranges>

#include "base/quoted_text.h"
#include "grammar/tool_dialect.h"
#include "local/flag_table.h"
#include "local/json_flags.h"
#include "local/pooler_config.h"
#include "local/structured_outputs_config.h"
#include "serve/media_io.h"
#include "serve/openai/find_parsers.h"

namespace octavo {
namespace {

std::vector<std::string> with_auto(const std::vector<std::string_view>& names) {
  std::vector<std::string> all{"auto", "none"};
  all.insert(all.end(), names.begin(), names.end());
  return all;
}
std::vector<std::string> tool_parsers() { return with_auto(grammar::tool_dialect_names()); }
std::vector<std::string> reasoning_parsers() { return with_auto(openai::reasoning_parsers()); }

Result<std::vector<LoraModule>> read_lora_modules(const std::vector<std::string>& texts) {
  std::vector<LoraModule> modules;
  for (const std::string& text : texts) {
    TRY(modules.emplace_back(), read_lora_module(text));
  }
  return modules;
}

// Reads vLLM's module names, separated by commas. All of them enable the same spans.
Result<bool> read_detailed_traces(const std::string& text) {
  for (const auto part : std::views::split(text, ',')) {
    const std::string_view name(part.begin(), part.end());
    if (name != "model" && name != "worker" && name != "all")
      return invalid("", "must be model, worker or all, got {}", quoted_text(name));
  }
  return true;
}

constexpr Choice<ContentFormat> kContentFormats[] = {
    {"auto", ContentFormat::automatic}, {"string", ContentFormat::string}, {"openai", ContentFormat::parts}};

using RuntimeFlag = FlagRow<RuntimeCommand>;
RuntimeOptions& runtime_of(RuntimeCommand& c) { return c.runtime; }
ServeOptions& serving_of(RuntimeCommand& c) { return c.runtime.serve; }
openai::RequestRules& rules_of(RuntimeCommand& c) { return c.runtime.serve.rules; }
mcp::Options& mcp_of(RuntimeCommand& c) { return c.runtime.serve.access.mcp; }
MediaSources& sources_of(RuntimeCommand& c) { return c.runtime.serve.media.sources; }

constexpr RuntimeFlag kParserFlags[] = {
    {"--tool-call-parser", flag::to<runtime_of, &RuntimeOptions::tool_call_parser>,
     "Format of the model's tool calls. auto: the chat template decides; none keeps tool calls in the text",
     OneOfList{tool_parsers}},
    {"--exclude-tools-when-tool-choice-none", flag::to<rules_of, &openai::RequestRules::exclude_unused_tools>,
     "Leave the tools out of the prompt if a request sets tool_choice to none"},
    {"--reasoning-parser", flag::to<runtime_of, &RuntimeOptions::reasoning_parser>,
     "Format of the model's reasoning, which replies contain in the field `reasoning`. auto: the chat "
     "template decides; none keeps the reasoning in the text",
     OneOfList{reasoning_parsers}},
    {"--reasoning-config", flag::parsed<read_reasoning_config, runtime_of, &RuntimeOptions::reasoning_config>,
     R"(Texts before and after the reasoning, as JSON: {"reasoning_start_str": "<think>", )"
     R"("reasoning_end_str": "</think>"}. They must be those of --reasoning-parser)"},
    {"--structured-outputs-config",
     flag::parsed<parse_structured_outputs_config, rules_of, &openai::RequestRules::json>,
     R"(Rules for answers with a JSON schema, as JSON: {"disable_any_whitespace": true, )"
     R"("unknown_keywords": "refuse", "unique_items": "refuse", "member_order": "any"})"},
};

constexpr RuntimeFlag kTemplateFlags[] = {
    {"--chat-template", flag::to<runtime_of, &RuntimeOptions::chat_template>,
     "Chat template, or a file that contains it; replaces the model's template"},
    {"--chat-template-content-format",
     flag::chosen<kContentFormats, serving_of, &ServeOptions::content_format>,
     "How the template gets a message with several parts: string (texts joined by line breaks), openai (a "
     "list of parts), auto (the form that the template supports)"},
    {"--trust-request-chat-template", flag::to<rules_of, &openai::RequestRules::trust_chat_templates>,
     "Allow requests to set chat_template"},
    {"--default-chat-template-kwargs",
     flag::parsed<json_object, rules_of, &openai::RequestRules::default_template_kwargs>,
     R"(Default arguments of the chat template, as JSON: {"enable_thinking": false}. A request can )"
     "override them"},
    {"--mm-processor-kwargs", flag::parsed<json_object, runtime_of, &RuntimeOptions::mm_processor_kwargs>,
     R"(Values that replace the model's settings for images, as JSON: {"size": {"longest_edge": 1024}} )"
     R"(divides an image into fewer tiles, {"do_image_splitting": false} makes one tile, {"max_pixels": )"
     "501760} makes images smaller"},
    {"--media-io-kwargs", flag::parsed<read_media_io_flag, runtime_of, &RuntimeOptions::media_io>,
     R"(Options for decoding media, as JSON. {"video": {"num_frames": 16}} takes 16 evenly spaced frames of a )"
     R"(video (-1: all frames); {"video": {"fps": 1}} takes one frame per second; {"image": )"
     R"({"rgba_background_color": [0, 0, 0]}} makes transparent pixels black. Requests can override them)"},
    {"--response-role", flag::to<serving_of, &ServeOptions::response_role>,
     "Role of the messages in replies"},
};

constexpr RuntimeFlag kModelFlags[] = {
    {"--pooler-config", flag::parsed<read_pooler_config, runtime_of>,
     R"(Values that replace the model's pooling settings, as JSON: {"pooling_type": "MEAN"} (or CLS, )"
     R"(LAST, ALL, STEP); {"enable_chunked_processing": true, "max_embed_len": 100000} splits long texts )"
     "into chunks"},
    {"--tokenizer", flag::to<runtime_of, &RuntimeOptions::tokenizer>,
     "Folder or file of the tokenizer (default: the model's)"},
    {"--served-model-name", flag::to<runtime_of, &RuntimeOptions::served_model_names>,
     "Names of the model in the API; replies contain the first name (default: the model argument as given, "
     "or demo without an argument)"},
};

constexpr RuntimeFlag kGenerationFlags[] = {
    {"--generation-config",
     flag::to<runtime_of, &RuntimeOptions::sampling_defaults, &SamplingDefaults::source>,
     "Source of default sampling parameters: auto (the model's generation_config.json), vllm (vLLM's "
     "defaults), or a folder with a generation_config.json"},
    {"--override-generation-config", flag::parsed<read_generation_overrides, runtime_of>,
     R"(Default sampling parameters that override those of --generation-config, as JSON: {"temperature": )"
     "0.5}"},
};

constexpr RuntimeFlag kModuleFlags[] = {
    {"--lora-modules", flag::parsed<read_lora_modules, runtime_of, &RuntimeOptions::lora_modules>,
     R"(LoRA adapters to load at the start, in PEFT's format: NAME=PATH, or JSON as {"name": "a", "path": )"
     R"("folder", "base_model_name": "b"}; needs --enable-lora)"},
};

constexpr RuntimeFlag kSourceFlags[] = {
    {"--allowed-media-domains", flag::to<sources_of, &MediaSources::domains>,
     "Hosts from which the server may download images, videos and sound (http: and https: URLs); without "
     "this flag, all hosts with a public address"},
    {"--allowed-local-media-path", flag::to<sources_of, &MediaSources::local_path>,
     "Folder of images, videos and sounds that requests may name with file: URLs", Folder{}},
    {"--mcp-allow", flag::to<mcp_of, &mcp::Options::allowed>,
     "MCP servers whose tools requests to /v1/responses may use, as HOST or HOST:PORT; without this flag a "
     "request cannot use any MCP server"},
    {"--otlp-traces-endpoint", flag::to<&RuntimeCommand::otlp_traces_endpoint>,
     "URL of a collector (OTLP) that gets a span for each answer: http://HOST:4318/v1/traces or "
     "grpc://HOST:4317"},
    {"--collect-detailed-traces",
     flag::parsed<read_detailed_traces, serving_of, &ServeOptions::observe, &ObserveOptions::phase_spans>,
     "Send also spans of the phases of each answer (queue, prefill, decode): model, worker or all; needs "
     "--otlp-traces-endpoint"},
};

constexpr RuntimeFlag kOffloadingFlags[] = {
    {"--kv-offloading-size", flag::to<&RuntimeCommand::kv_offloading, &KvOffloading::gib>,
     "Size in GiB of a second tier of the KV cache: host memory for GPUs; for CPUs, files in the folder "
     "octavo/kv of the user's cache folder. 0: no second tier. --kv-transfer-config can set another folder "
     "or use both memory and disk",
     flag::range(0.0, 1e6)},
    {"--kv-offloading-backend", flag::to<&RuntimeCommand::kv_offloading, &KvOffloading::backend>,
     "Backend of --kv-offloading-size; only native is supported", OneOf{"native"}},
};

}  // namespace

void add_runtime_flags(CLI::App& app, RuntimeCommand& command) {
  add_flags(app, command, "Tools and reasoning", kParserFlags);
  add_flags(app, command, "Chat templates", kTemplateFlags);
  add_flags(app, command, "Model", kModelFlags);
  add_flags(app, command, "Requests and replies", kGenerationFlags);
  add_flags(app, command, "LoRA", kModuleFlags);
  add_flags(app, command, "Server", kSourceFlags);
  add_data_parallel_flags(app, command.data_parallel);
  add_flags(app, command, "KV cache", kOffloadingFlags);
}

}  // namespace octavo
