// guesses_soak [requests] [seed] [device] [method ..]: runs `requests` random requests with each proposer,
// on "cpu" or "cuda", and prints statistics.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "draft_tokens.h"

int main(int argc, char** argv) {
  using namespace octavo;
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  const int requests = argc > 1 ? std::atoi(arguments[1]) : 5000;
  const auto seed = argc > 2 ? static_cast<std::uint32_t>(std::atoll(arguments[2])) : 1;
  const std::string device = argc > 3 ? arguments[3] : "cpu";
  const auto methods = arguments.subspan(std::min<std::size_t>(4, arguments.size()));
  std::string scratch = std::filesystem::temp_directory_path() / "guesses.XXXXXX";
  if (mkdtemp(scratch.data()) == nullptr) return 1;
  std::int64_t differences = 0;
  for (const Proposing& proposing : all_proposing()) {
    if (!methods.empty() && std::ranges::find(methods, proposing.name) == methods.end()) continue;
    const DraftTokenReport report = check_draft_tokens(proposing, requests, seed, device, scratch);
    fmt::print("{:<14} {}: {} requests, {} differences, {} draft tokens, {} accepted, {} preemptions\n",
               proposing.name, proposing.model, report.requests, report.differences, report.draft_tokens,
               report.accepted, report.preemptions);
    std::fflush(stdout);
    differences += report.differences;
  }
  std::filesystem::remove_all(scratch);
  return differences == 0 ? 0 : 1;
}
