// Callbacks for the progress of a download. Several threads call them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace octavo::hub {

struct Watcher {
  std::function<void(std::uint64_t done, std::uint64_t all)> bytes;
  std::function<void(const std::string& file, std::uint64_t size)> file;  // called when the file is complete
};

}  // namespace octavo::hub
