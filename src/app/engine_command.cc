#include "app/engine_command.h"

#include <fstream>
#include <memory>
#include <utility>

#include "engine/load.h"
#include "local/grammar_vocabulary.h"
#include "local/load_tokenizer.h"
#include "model/generation_config.h"
#include "remote/child_process.h"
#include "remote/engine_host.h"

namespace octavo {

namespace {

// This process's command line with a flag more.
std::vector<std::string> command_with(const char* flag) {
  std::vector<std::string> arguments;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  arguments.emplace_back(flag);
  return arguments;
}

}  // namespace

std::vector<std::string> engine_command() { return command_with(kRunEngineFlag); }

Result<> run_engine(RuntimeOptions runtime, int rank) {
  EngineOptions& options = runtime.engine;
  remote::follow_parent();
  if (rank > 0) return run_rank(options, rank);
  remote::EngineHost host(remote::kChildSocket);
  TRY(const remote::Hello hello, host.hello());
  if (hello.num_blocks > 0) options.num_blocks = hello.num_blocks;
  std::unique_ptr<Tokenizer> tokenizer;  // of grammars, when the first one comes
  const auto vocabulary = [&]() -> Result<std::shared_ptr<const grammar::Vocabulary>> {
    TRY(Tokenizer loaded, load_tokenizer(runtime.tokenizer.empty() ? options.model_dir : runtime.tokenizer));
    tokenizer = std::make_unique<Tokenizer>(std::move(loaded));
    TRY(GenerationConfig config, load_generation_config(options.model_dir));
    return grammar_vocabulary(*tokenizer, std::move(config.eos_ids));
  };
  // The parent has found the draft model, too, but its command line has the name alone.
  if (const Result<> found = find_models(options, runtime.hub); !found) {
    host.failed(found.error());
    return {};
  }
  const auto engine =
      load_engine(options, {.progress = [&](std::size_t done, std::size_t all) { host.loading(done, all); },
                            .vocabulary = vocabulary,
                            .after_step = [&] { host.flush(); },
                            .rank_command = command_with(kRunRankFlag)});
  if (!engine) {
    host.failed(engine.error());
    return {};
  }
  host.run(**engine);
  return {};
}

}  // namespace octavo
