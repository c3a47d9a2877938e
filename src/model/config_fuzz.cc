// Fuzzer. Any text must result in a network or an error. Also computes the network's cache layout and cost.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/check.h"
#include "fuzz/json_mutator.h"
#include "model/cache_layout.h"
#include "model/families/families.h"
#include "model/inspect.h"
#include "model/rope.h"

namespace {

// The config.json files of all committed checkpoints. The fuzzer runs in the project's root folder.
std::vector<std::string> committed_configs() {
  std::vector<std::string> texts;
  for (const auto& folder : std::filesystem::directory_iterator("tests/data/models")) {
    std::ifstream file(folder.path() / "config.json");
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  static const octavo::fuzz::JsonMutator mutator(committed_configs());
  return mutator(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = octavo::Config::parse({reinterpret_cast<const char*>(data), size});
  if (!config) return 0;
  const auto spec = octavo::describe(*config);
  if (!spec) return 0;
  CHECK(octavo::count_parameters(*spec).total > 0);
  const octavo::CacheLayout layout = octavo::cache_layout(*spec, {});
  CHECK(layout.planes > 0 || layout.state_floats > 0);
  for (const octavo::RopeSpec& rope : spec->ropes)
    for (const float x : octavo::rope_frequencies(rope, std::min(spec->max_positions, 4)))
      CHECK(std::isfinite(x));
  return 0;
}
