// Callbacks for the progress of downloads. Several threads call them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace octavo::hub {

struct Watcher {
  std::function<void(std::uint64_t done, std::uint64_t all)> bytes;
  // called when the file is complete
  std::function<void(const std::string& file, std::uint64_t size)> file;
};

}  // namespace octavo::hub
