// Fuzzes the scheduler: the fuzzer's input chooses the options and all operations of the simulation.
#include <cstddef>
#include <cstdint>
#include <span>

#include "schedule/testing/simulation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octavo;
  std::span<const std::uint8_t> bytes(data, size);
  // Each choice consumes two bytes of the input. After the end of the input, a fixed seed makes the choices
  // that end the simulation.
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
