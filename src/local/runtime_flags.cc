#include "local/runtime_flags.h"

#include <ranges>

#include "grammar/tool_dialect.h"
#include "local/flag_table.h"
#include "local/json_flags.h"
#include "local/media_io.h"
#include "local/pooler_config.h"
#include "local/structured_outputs_config.h"
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

// Reads the names of vLLM's modules, separated by commas. All of them select the same spans.
Result<bool> read_detailed_traces(const std::string& text) {
  for (const auto part : std::views::split(text, ',')) {
    const std::string_view name(part.begin(), part.end());
    if (name != "model" && name != "worker" && name != "all")
      return invalid("", "must be model, worker or all, got {:?}", name);
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
     "Format of the model's tool calls; auto: found in the chat template, none: calls stay in the text",
     OneOfList{tool_parsers}},
    {"--exclude-tools-when-tool-choice-none", flag::to<rules_of, &openai::RequestRules::exclude_unused_tools>,
     "Leave tools out of the prompt of requests that say tool_choice none"},
    {"--reasoning-parser", flag::to<runtime_of, &RuntimeOptions::reasoning_parser>,
     "Format of the model's reasoning, which replies return in `reasoning`; auto: found in the chat "
     "template, none: reasoning stays in the text",
     OneOfList{reasoning_parsers}},
    {"--reasoning-config", flag::parsed<read_reasoning_config, runtime_of, &RuntimeOptions::reasoning_config>,
     R"(Texts before and after the reasoning, as JSON: {"reasoning_start_str": "<think>", )"
     R"("reasoning_end_str": "</think>"}. They must be those of --reasoning-parser)"},
    {"--structured-outputs-config",
     flag::parsed<parse_structured_outputs_config, rules_of, &openai::RequestRules::json>,
     R"(Rules for JSON answers with a schema, as JSON: {"disable_any_whitespace": true, )"
     R"("unknown_keywords": "refuse", "unique_items": "refuse", "member_order": "any"})"},
};

constexpr RuntimeFlag kTemplateFlags[] = {
    {"--chat-template", flag::to<runtime_of, &RuntimeOptions::chat_template>,
     "File with a chat template, or the template itself, instead of the model's own"},
    {"--chat-template-content-format",
     flag::chosen<kContentFormats, serving_of, &ServeOptions::content_format>,
     "How a content of several parts goes into the template: string (joined by line breaks), openai (as the "
     "list of parts), auto (as the template takes it)"},
    {"--trust-request-chat-template", flag::to<rules_of, &openai::RequestRules::trust_chat_templates>,
     "Allow chat_template in requests"},
    {"--default-chat-template-kwargs",
     flag::parsed<json_object, rules_of, &openai::RequestRules::default_template_kwargs>,
     R"(JSON: arguments for the template that a request does not give, as {"enable_thinking": false})"},
    {"--mm-processor-kwargs", flag::parsed<json_object, runtime_of, &RuntimeOptions::mm_processor_kwargs>,
     R"(JSON: preprocessing of images, in place of the model's: {"size": {"longest_edge": 1024}} )"
     R"(makes fewer tiles of an image, {"do_image_splitting": false} one, {"max_pixels": 501760} smaller images)"},
    {"--media-io-kwargs", flag::parsed<read_media_io, runtime_of, &RuntimeOptions::video_frames>,
     R"(JSON: which frames of a video are used, instead of the model's choice: )"
     R"({"video": {"num_frames": 16}} takes 16, evenly spread (-1: all); )"
     R"({"video": {"fps": 1}} takes one per second)"},
    {"--response-role", flag::to<serving_of, &ServeOptions::response_role>,
     "Role of the messages in replies"},
};

constexpr RuntimeFlag kModelFlags[] = {
    {"--pooler-config", flag::parsed<read_pooler_config, runtime_of>,
     R"(JSON: pooling of texts, in place of the model's: {"pooling_type": "MEAN"}, also CLS, LAST, ALL )"
     R"(and STEP; {"enable_chunked_processing": true, "max_embed_len": 100000} reads long texts in chunks)"},
    {"--tokenizer", flag::to<runtime_of, &RuntimeOptions::tokenizer>,
     "Folder or file of the tokenizer (default: the model's)"},
    {"--served-model-name", flag::to<runtime_of, &RuntimeOptions::served_model_names>,
     "Names of the model in the API; replies have the first one (default: the model argument as "
     "given, or demo without one)"},
};

constexpr RuntimeFlag kGenerationFlags[] = {
    {"--generation-config", flag::to<runtime_of, &RuntimeOptions::generation_config>,
     "Source of sampling values that a request does not set: auto (the model's generation_config.json), "
     "vllm (vLLM's defaults), or a folder with such a file"},
    {"--override-generation-config", flag::parsed<read_generation_overrides, runtime_of>,
     R"(JSON: sampling values that override those of --generation-config, as {"temperature": 0.5})"},
};

constexpr RuntimeFlag kModuleFlags[] = {
    {"--lora-modules", flag::parsed<read_lora_modules, runtime_of, &RuntimeOptions::lora_modules>,
     R"(Adapters (PEFT's folders) to load at the start: NAME=PATH, or JSON as {"name": "a", "path": )"
     R"("folder", "base_model_name": "b"}; needs --enable-lora)"},
};

constexpr RuntimeFlag kSourceFlags[] = {
    {"--allowed-media-domains", flag::to<sources_of, &MediaSources::domains>,
     "Hosts from which images and audio are fetched by http: and https:; without it nothing is fetched"},
    {"--allowed-local-media-path", flag::to<sources_of, &MediaSources::local_path>,
     "Folder with images and sounds that requests may name by file: URLs", Folder{}},
    {"--mcp-allow", flag::to<mcp_of, &mcp::Options::allowed>,
     "HOST or HOST:PORT of MCP servers whose tools requests to /v1/responses may use; without it none is "
     "used"},
    {"--otlp-traces-endpoint", flag::to<&RuntimeCommand::otlp_traces_endpoint>,
     "Send a span for each answer to this collector: OTLP over HTTP as JSON, as "
     "http://HOST:4318/v1/traces"},
    {"--collect-detailed-traces",
     flag::parsed<read_detailed_traces, serving_of, &ServeOptions::observe, &ObserveOptions::phase_spans>,
     "Send also spans of the phases of each answer (queue, prefill, decode): model, worker or all; needs "
     "--otlp-traces-endpoint"},
};

constexpr RuntimeFlag kOffloadingFlags[] = {
    {"--kv-offloading-size", flag::to<&RuntimeCommand::kv_offloading, &KvOffloading::gib>,
     "GiB for a tier below the KV cache: GPUs use host memory, CPUs the folder octavo/kv in the user's "
     "cache folder; 0: no tier. Other folders or both: --kv-transfer-config",
     flag::range(0.0, 1e6)},
    {"--kv-offloading-backend", flag::to<&RuntimeCommand::kv_offloading, &KvOffloading::backend>,
     "Backend of --kv-offloading-size: native", OneOf{"native"}},
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
