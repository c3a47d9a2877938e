// schedule_soak [operations] [seed] runs the simulation for `operations` operations and prints statistics.
#include <fmt/format.h>

#include <cstdlib>

#include "schedule/testing/simulation.h"

int main(int argc, char** argv) {
  using namespace octavo;
  const std::int64_t operations = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const std::uint64_t seed = argc > 2 ? static_cast<std::uint64_t>(std::atoll(argv[2])) : 0;
  std::int64_t done = 0, worlds = 0, finished = 0, refused = 0, steps = 0, preemptions = 0, hits = 0;
  int most_preemptions = 0;
  for (; done < operations; ++worlds) {
    const Choose choose = random_choices((seed << 32) + static_cast<std::uint64_t>(worlds));
    Simulation simulation(random_options(choose), choose);
    const int length = 100 + choose(2000);
    for (int i = 0; i < length; ++i) simulation.operate();
    simulation.drain();
    done += length;
    finished += simulation.finished();
    refused += simulation.refused();
    steps += simulation.steps();
    preemptions += simulation.scheduler().stats().preemptions;
    hits += simulation.scheduler().stats().prefix_hits;
    most_preemptions = std::max(most_preemptions, simulation.most_preemptions());
  }
  fmt::print(
      "{} operations, {} worlds, {} steps: {} finished, {} refused, {} preemptions (most of one sequence: "
      "{}), "
      "{} tokens from the cache\n",
      done, worlds, steps, finished, refused, preemptions, most_preemptions, hits);
}
