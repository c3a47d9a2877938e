#include "local/find_model.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "hub/pull.h"
#include "local/engine_flags.h"
#include "local/find_mmproj.h"
#include "local/progress.h"
#include "model/adapter_config.h"

namespace octavo {
namespace {

// Returns true if the text cannot be a name on the hub.
bool looks_like_a_path(const std::string& given) {
  return given.starts_with('/') || given.starts_with('.') || given.starts_with('~') || given.ends_with('/') ||
         given.ends_with(".gguf") || std::ranges::count(given.substr(0, given.find('@')), '/') > 1;
}

// Returns the download settings. Flags have priority over the environment.
hub::Settings settings_of(const HubFlags& flags) {
  hub::Settings settings = hub::settings_of(flags.environment);
  if (!flags.download_dir.empty()) settings.cache_dir = flags.download_dir;
  if (flags.token && !flags.token->empty()) settings.token = *flags.token;
  return settings;
}

// Shows a progress bar on a terminal, and otherwise logs a line for each file.
Result<std::string> download(const hub::ModelName& name, const HubFlags& flags, decltype(hub::pull)& pull) {
  ProgressBar bar("downloading " + name.repo, "GB", 1e9);
  const bool watched = isatty(STDERR_FILENO) == 1;
  const hub::Watcher watcher{.bytes = [&](std::uint64_t done, std::uint64_t all) { bar.show(done, all); },
                             .file =
                                 [&](const std::string& file, std::uint64_t size) {
                                   if (!watched)
                                     log_info("downloaded {} of {}, {:.1f} MB", file, name.repo,
                                              static_cast<double>(size) * 1e-6);
                                 }};
  TRY(const std::filesystem::path path, pull(name, settings_of(flags), watcher));
  return path.string();
}

// Phi-4-multimodal needs this adapter for images.
Result<> take_own_adapter(EngineOptions& options) {
  const std::string folder = options.model.dir + "/vision-lora";
  std::error_code ignored;
  LoraOptions& lora = options.lora;
  if (options.media.images == 0 || lora.by_media.contains("image") ||
      !std::filesystem::exists(folder + "/adapter_config.json", ignored))
    return {};
  TRY(const AdapterConfig config, load_adapter_config(folder));
  lora.max_lora_rank = lora.enabled ? std::max(lora.max_lora_rank, config.rank_max()) : config.rank_max();
  lora.max_loras = lora.enabled ? lora.max_loras + 1 : 1;
  lora.enabled = true;
  lora.by_media["image"] = folder;
  return {};
}

}  // namespace

void add_hub_flags(CLI::App& command, HubFlags& flags, hub::Environment environment) {
  command.add_option("--revision", flags.revision, "Branch, tag or commit of a Hub model (default: main)")
      ->group("Model");
  add_cache_flag(command, flags, std::move(environment));
  command
      .add_option("--hf-token", flags.token,
                  "Token for gated models (default: $HF_TOKEN, or the token that `hf auth login` has stored)")
      ->expected(0, 1)
      ->group("Model");
}

void add_cache_flag(CLI::App& command, HubFlags& flags, hub::Environment environment) {
  flags.environment = std::move(environment);
  command
      .add_option("--download-dir", flags.download_dir,
                  "Cache folder of Hub models (default: $HF_HUB_CACHE, $HF_HOME/hub, "
                  "~/.cache/huggingface/hub)")
      ->group("Model");
}

std::filesystem::path cache_dir(const HubFlags& flags) { return settings_of(flags).cache_dir; }

Result<std::string> find_model(const std::string& given, const HubFlags& flags) {
  if (given.empty()) return demo_model_dir();
  std::error_code ignored;
  if (std::filesystem::exists(given, ignored)) return given;
  if (looks_like_a_path(given))
    return field_failure("model", ErrorCode::not_found, "{} does not exist", given);
  auto found = find_on_hub(given, flags);
  if (!found)
    found.error().message = fmt::format("the folder {} does not exist; {}", given, found.error().message);
  return found;
}

Result<> find_models(EngineOptions& options, const HubFlags& flags) {
  const std::string given = options.model.dir;
  TRY(options.model.dir, find_model(given, flags));
  TRY_VOID(take_own_adapter(options));
  if (options.media.images > 0 || options.media.videos > 0)
    TRY_VOID(find_mmproj(options.model, options.model.dir != given));
  if (!options.speculation) return {};
  auto& method = options.speculation->method;
  std::string* model = nullptr;
  if (auto* draft = std::get_if<DraftModelOptions>(&method)) model = &draft->model;
  if (auto* head = std::get_if<HeadOptions>(&method); head != nullptr && !head->model.empty())
    model = &head->model;
  if (auto* heads = std::get_if<PositionHeadOptions>(&method)) model = &heads->model;
  if (model == nullptr) return {};
  HubFlags of_draft = flags;
  of_draft.revision.clear();
  TRY(*model, find_model(*model, of_draft));
  return {};
}

Result<std::string> find_on_hub(const std::string& given, const HubFlags& flags) {
  TRY(hub::ModelName name, hub::parse_model_name(given));
  if (!flags.revision.empty()) {
    TRY(name, hub::parse_model_name(fmt::format("{}@{}{}{}", name.repo, flags.revision,
                                                name.variant.empty() ? "" : ":", name.variant)));
  }
  return download(name, flags, hub::pull);
}

Result<std::string> find_adapter(const std::string& given, const HubFlags& flags) {
  std::error_code ignored;
  if (std::filesystem::exists(given, ignored) || looks_like_a_path(given)) return given;
  TRY(const hub::ModelName name, hub::parse_model_name(given));
  auto found = download(name, flags, hub::pull_adapter);
  if (!found)
    found.error().message = fmt::format("the folder {} does not exist; {}", given, found.error().message);
  return found;
}

}  // namespace octavo
