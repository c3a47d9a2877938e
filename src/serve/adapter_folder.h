// A folder of LoRA adapters. The server loads an adapter when the first request names it, as in vLLM's
// lora_filesystem_resolver.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "serve/service.h"

namespace octavo {

// Returns the path of the adapter with this name in the folder, or nullopt if it does not exist or if its
// base model is not in `base_names`.
std::optional<std::string> find_in_adapter_folder(const std::filesystem::path& root, const std::string& name,
                                                  const std::vector<std::string>& base_names);

class AdapterFolder {
 public:
  // Lets requests of the service name the adapters in the folder. Ignores adapters whose base model is not in
  // `base_names`. Returns an error if `path` is not a folder.
  static Result<> open(const std::string& path, std::vector<std::string> base_names, const Service& service);

  // Returns whether the folder has an adapter with this name for the served model. The first call for a name
  // starts to load the adapter and does not wait; requests that use the adapter wait for it. Returns an error
  // if the adapter cannot be loaded. Any thread may call it.
  Result<bool> offers(const std::string& name);

 private:
  using Time = std::filesystem::file_time_type;
  struct Failure {
    Error error;
    std::optional<Time> changed{};  // modification time of the invalid files; nullopt: a retry can succeed
  };

  AdapterFolder(std::filesystem::path root, std::vector<std::string> base_names, const Service& service)
      : root_(std::move(root)), base_names_(std::move(base_names)), service_(service) {}
  std::optional<Failure> failure_of(const std::string& name) const;
  void ended(const std::string& name, const std::string& path, Time changed, const Result<>& result);

  const std::filesystem::path root_;
  const std::vector<std::string> base_names_;
  const Service& service_;
  std::mutex loading_;  // held while an adapter loads, so that no adapter is loaded twice
  mutable std::mutex mutex_;
  // the last failed load of each adapter, by name
  std::map<std::string, Failure> failures_;
};

}  // namespace octavo
