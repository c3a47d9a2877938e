// Test-only: an engine with the simulated device, in a separate process. Arguments:
//   --step-us=N        time of a step in microseconds
//   --index=I          index among several engines
//   --refuse           fails to load
//   --die              dies immediately
//   --die-of=ID        dies when a prompt begins with this token
//   --weights=N        adds N to each output token; `broken`: fails to load
//   --of-another-host  runs as an engine that is not on the server's host
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "engine/execute/simulated_executor.h"
#include "engine/loop/engine.h"
#include "remote/child_process.h"
#include "remote/engine_host.h"
#include "remote/engine_meeting.h"

namespace octavo {
namespace {

constexpr SimulatedExecutorOptions kDevice{.num_blocks = 256};

class SlowExecutor final : public Executor {
 public:
  SlowExecutor(int step_us, TokenId die_of, TokenId added) : step_us_(step_us), die_of_(die_of), added_(added) {}

  bool asynchronous() const override { return false; }
  Result<> forward(const Batch& batch) override {
    for (std::size_t i = 0; i < batch.ids.size(); ++i)
      if (batch.positions[i] == 0 && batch.ids[i] == die_of_) std::abort();
    std::this_thread::sleep_for(std::chrono::microseconds(step_us_));
    return device_.forward(batch);
  }
  Result<> sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) override {
    return device_.sample(tokens, rows);
  }
  Result<std::span<SampledToken>> collect() override {
    TRY(const std::span<SampledToken> tokens, device_.collect());
    for (SampledToken& token : tokens) token.id = (token.id + added_) % kDevice.vocab_size;
    return tokens;
  }
  Result<> release_cache() override { return device_.release_cache(); }

 private:
  int step_us_;
  TokenId die_of_, added_;
  SimulatedExecutor device_{kDevice};
};

// The lower-case letters are tokens. The last token ends a text.
Result<std::shared_ptr<const grammar::Vocabulary>> vocabulary() {
  std::vector<std::string> tokens(static_cast<std::size_t>(kDevice.vocab_size));
  for (int id = 0; id < 26; ++id) tokens[static_cast<std::size_t>(id)] = static_cast<char>('a' + id);
  return grammar::Vocabulary::make(std::move(tokens), {}, {kDevice.vocab_size - 1}, 1 << 20);
}

int run(std::map<std::string, std::string> flags) {
  const auto number = [&](const std::string& name) { return flags.contains(name) ? std::stoi(flags[name]) : -1; };
  remote::follow_parent();
  remote::EngineHost host(flags.contains("--of-another-host") ? remote::kServerSocket : remote::kChildSocket);
  if (!host.hello() || flags.contains("--die")) return 1;
  if (flags.contains("--refuse") || flags["--weights"] == "broken") {
    host.failed({ErrorCode::corrupt, "the model is broken", "model"});
    return 0;
  }
  host.loading(1, 2);
  SchedulerOptions options;
  options.block_size = kDevice.block_size;
  options.num_blocks = kDevice.num_blocks;
  options.max_num_batched_tokens = 64;
  options.max_num_seqs = 8;
  options.max_model_len = 512;
  EngineInfo info;
  info.index = std::max(number("--index"), 0);
  info.architecture = "simulated";
  info.vocab_size = kDevice.vocab_size;
  info.max_queued = 64;
  const auto engine =
      Engine::start(options, info,
                    {.executor = std::make_unique<SlowExecutor>(number("--step-us"), number("--die-of"),
                                                              flags["--weights"].empty() ? 0 : number("--weights")),
                     .vocabulary = vocabulary,
                     .after_step = [&] { host.flush(); }})
          .value();
  host.run(*engine);
  return 0;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    flags[argument.substr(0, equals)] = equals == std::string::npos ? "" : argument.substr(equals + 1);
  }
  return octavo::run(flags);
}
