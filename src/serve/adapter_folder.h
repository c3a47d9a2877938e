// A folder of LoRA adapters, each loaded at the first request that names it, as in vLLM's
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

class AdapterFolder {
 public:
  // Lets the service's requests use the folder's adapters. Only adapters of the base model count; base_names:
  // its names. Error: not a folder.
  static Result<> open(const std::string& path, std::vector<std::string> base_names, const Service& service);

  // Safe from any thread. Whether requests may use this name: the folder exists and belongs to this model.
  // The first call starts loading the adapter; only requests for this adapter wait. Error: the folder exists
  // but cannot be loaded.
  Result<bool> offers(const std::string& name);

 private:
  using Time = std::filesystem::file_time_type;
  struct Failure {
    Error error;
    std::optional<Time> changed{};  // modification time of the faulty files; nullopt: a retry can succeed
  };

  AdapterFolder(std::filesystem::path root, std::vector<std::string> base_names, const Service& service)
      : root_(std::move(root)), base_names_(std::move(base_names)), service_(service) {}
  std::optional<std::string> find(const std::string& name) const;
  bool is_of_this_model(const std::filesystem::path& folder) const;
  std::optional<Failure> failure_of(const std::string& name) const;
  void ended(const std::string& name, const std::string& path, Time changed, const Result<>& result);

  const std::filesystem::path root_;
  const std::vector<std::string> base_names_;
  const Service& service_;
  std::mutex asking_;  // held during a load, so that no adapter is loaded twice
  mutable std::mutex mutex_;
  std::map<std::string, Failure> failures_;  // failed loads by folder name; at most one for each folder
};

}  // namespace octavo
