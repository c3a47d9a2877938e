// For tests: a new directory that no other process or build uses. The destructor removes it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"

namespace octavo {

class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = testing::TempDir() + "octavo.XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr, "{}", name);
    path_ = name;
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  // Also creates parent directories.
  void write(std::string_view name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    CHECK(std::filesystem::file_size(file) == bytes.size(), "{}", file.string());
  }

 private:
  std::filesystem::path path_;
};

}  // namespace octavo
