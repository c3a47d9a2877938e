#include "serve/adapter_folder.h"

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>

#include "base/log.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kNameBytesMax = 256;
constexpr std::size_t kConfigBytesMax = 1 << 20;
constexpr const char* kConfig = "adapter_config.json";

// Returns whether the name is a valid path below the folder. Each adapter must have exactly one valid name,
// so "a/../b", "./b" and "b/" are invalid.
bool is_path_downwards(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && name.size() <= kNameBytesMax && name.find('\0') == std::string::npos &&
         path.is_relative() && path.has_filename() && path.lexically_normal().native() == name &&
         *path.begin() != ".." && *path.begin() != ".";
}

fs::file_time_type changed_at(const fs::path& folder) {
  auto latest = fs::file_time_type::min();
  for (const char* file : {kConfig, "adapter_model.safetensors", "adapter_model.bin"}) {
    std::error_code error;
    if (const auto time = fs::last_write_time(folder / file, error); !error) latest = std::max(latest, time);
  }
  return latest;
}

// Returns whether the adapter's files cause the error. Then a retry fails until the files change.
bool is_of_the_files(ErrorCode code) {
  return code != ErrorCode::resource_exhausted && code != ErrorCode::unavailable;
}

bool is_of_model(const fs::path& folder, const std::vector<std::string>& base_names) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(folder / kConfig, error);
  if (error || bytes > kConfigBytesMax) return false;
  std::ifstream file(folder / kConfig, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const json::value config = json::parse(text, error);
  if (error || !config.is_object()) return false;
  const auto text_of = [&](const char* field) -> std::string_view {
    const json::value* value = config.as_object().if_contains(field);
    return value != nullptr && value->is_string() ? std::string_view(value->as_string()) : std::string_view();
  };
  return text_of("peft_type") == "LORA" &&
         std::ranges::find(base_names, text_of("base_model_name_or_path")) != base_names.end();
}

}  // namespace

std::optional<std::string> find_in_adapter_folder(const fs::path& root, const std::string& name,
                                                  const std::vector<std::string>& base_names) {
  if (!is_path_downwards(name)) return std::nullopt;
  std::error_code error;
  const fs::path whole = fs::canonical(root, error);
  if (error) return std::nullopt;
  // canonical() resolves links, which must not lead out of the folder
  const fs::path folder = fs::canonical(whole / name, error);
  if (error || std::ranges::mismatch(whole, folder).in1 != whole.end()) return std::nullopt;
  return is_of_model(folder, base_names) ? std::optional(folder.string()) : std::nullopt;
}

Result<> AdapterFolder::open(const std::string& path, std::vector<std::string> base_names,
                             const Service& service) {
  std::error_code error;
  fs::path root = fs::canonical(path, error);
  if (error || !fs::is_directory(root, error))
    return invalid("VLLM_LORA_RESOLVER_CACHE_DIR", "must be a folder, got {}", path);
  const std::shared_ptr<AdapterFolder> folder(
      new AdapterFolder(std::move(root), std::move(base_names), service));
  service.adapters->look_further([folder](const std::string& name) { return folder->offers(name); });
  return {};
}

Result<bool> AdapterFolder::offers(const std::string& name) {
  const std::lock_guard lock(loading_);
  // Checks again, because another request may have loaded the adapter while this one waited for the lock.
  if (service_.adapters->find(name)) return true;
  const auto path = find_in_adapter_folder(root_, name, base_names_);
  if (!path) return false;
  const Time changed = changed_at(*path);
  if (const auto failed = failure_of(name); failed && failed->changed == changed)
    return std::unexpected(failed->error);
  {
    const std::lock_guard forgetting(mutex_);
    failures_.erase(name);
  }
  log_info("loading the adapter {} from {}", name, *path);
  service_.engine.load_adapter({name, *path}, [this, name, path = *path, changed](const Result<>& result) {
    ended(name, path, changed, result);
  });
  // Adds the name only after load_adapter(), because requests with this name must reach the engine after the
  // adapter.
  service_.offer_adapter({.name = name, .path = *path, .parent = {}});
  if (const auto failed = failure_of(name)) {
    service_.adapters->remove(name);
    return std::unexpected(failed->error);
  }
  return true;
}

void AdapterFolder::ended(const std::string& name, const std::string& path, Time changed,
                          const Result<>& result) {
  if (result) return;
  const Error& error = result.error();
  log_warning("cannot load the adapter {} from {}: {}", name, path, error.message);
  {
    const std::lock_guard lock(mutex_);
    Failure failed{.error = {ErrorCode::invalid_argument,
                             fmt::format("the folder of the LoRA adapter exists, but cannot be loaded: {}",
                                         error.message),
                             "model"}};
    if (is_of_the_files(error.code))
      failed.changed = changed;
    else
      failed.error.code = error.code;
    failures_.insert_or_assign(name, std::move(failed));
  }
  if (const auto card = service_.adapters->find(name); card && card->path == path)
    service_.adapters->remove(name);
}

std::optional<AdapterFolder::Failure> AdapterFolder::failure_of(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(name);
  return found == failures_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace octavo
