// Lets the fuzzer choose the world and every operation of the simulation.
#include <cstddef>
#include <cstdint>
#include <span>

#include "schedule/simulation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octavo;
  std::span<const std::uint8_t> bytes(data, size);
  // Two bytes a choice; when they run out, a fixed sequence ends the world.
  const Choose rest = random_choices(0);
  const Choose choose = [&](int below) {
    if (bytes.size() < 2) return rest(below);
    const int value = bytes[0] | bytes[1] << 8;
    bytes = bytes.subspan(2);
    return value % below;
  };
  Simulation simulation(random_options(choose), choose);
  for (int i = 0; i < 2000 && bytes.size() >= 2; ++i) simulation.operate();
  simulation.drain();
  return 0;
}
