#include "app/engine_command.h"

#include <poll.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "engine/execute/ranks.h"
#include "engine/load/load.h"
#include "local/classifier_tokens.h"
#include "local/engine_flags.h"
#include "local/flag_table.h"
#include "local/grammar_vocabulary.h"
#include "local/load_tokenizer.h"
#include "model/generation_config.h"
#include "remote/child_process.h"
#include "remote/engine_host.h"
#include "remote/engine_meeting.h"

namespace octavo {

namespace {

constexpr int kRestartMs = 500;

// Returns this process's command line with one more flag and the assigned processors.
std::vector<std::string> command_with(const EngineOptions& options, const char* flag,
                                      const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = command_line();
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (!options.device.processors.empty())
    arguments.insert(arguments.end(), {kProcessorsFlag, options.device.processors});
  arguments.emplace_back(flag);
  return arguments;
}

// The parent process passes some models and tokens by name; finds their paths and ids.
Result<> settle(RuntimeOptions& runtime) {
  EngineOptions& options = runtime.engine;
  TRY_VOID(find_models(options, runtime.hub));
  return name_classifier_tokens(options, runtime.tokenizer.empty() ? options.model.dir : runtime.tokenizer);
}

constexpr FlagRow<EngineCommand> kChildFlags[] = {
    {kProcessorsFlag, flag::to<&RuntimeCommand::runtime, &RuntimeOptions::engine, &EngineOptions::device,
                               &DeviceOptions::processors>},
    {kRunEngineFlag, flag::to<&EngineCommand::child, &ChildProcess::runs_engine>},
    {kRunRankFlag, flag::to<&EngineCommand::child, &ChildProcess::rank>},
};

}  // namespace

void add_child_flags(CLI::App& app, EngineCommand& command) { add_flags(app, command, "", kChildFlags); }

std::vector<std::string> command_line() {
  std::vector<std::string> arguments;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

std::vector<std::string> engine_command(const EngineOptions& options, const std::vector<std::string>& more) {
  return command_with(options, kRunEngineFlag, more);
}

Result<> run_engine(RuntimeOptions runtime, int rank, bool of_another_host) {
  EngineOptions& options = runtime.engine;
  remote::follow_parent();
  if (rank > 0) {
    TRY_VOID(settle(runtime));
    return run_rank(options, rank);
  }
  remote::EngineHost host(of_another_host ? remote::kServerSocket : remote::kChildSocket);
  TRY(const remote::Hello hello, host.hello());
  if (hello.num_blocks > 0) options.cache.num_blocks = hello.num_blocks;
  std::unique_ptr<Tokenizer> tokenizer;  // loaded with the first grammar
  const auto vocabulary = [&](int vocab_size) -> Result<std::shared_ptr<const grammar::Vocabulary>> {
    TRY(Tokenizer loaded, load_tokenizer(runtime.tokenizer.empty() ? options.model.dir : runtime.tokenizer));
    tokenizer = std::make_unique<Tokenizer>(std::move(loaded));
    TRY(GenerationConfig config, load_generation_config(options.model.dir));
    add_eos_token(*tokenizer, config.eos_ids);
    return grammar_vocabulary(*tokenizer, std::move(config.eos_ids), vocab_size);
  };
  if (const Result<> settled = settle(runtime); !settled) {
    host.failed(settled.error());
    return {};
  }
  const auto engine =
      load_engine(options, {.progress = [&](std::size_t done, std::size_t all) { host.loading(done, all); },
                            .vocabulary = vocabulary,
                            .after_step = [&] { host.flush(); },
                            .rank_command = command_with(options, kRunRankFlag),
                            .kept_memory = hello.keeps_cache ? remote::kKeptMemory : -1});
  if (!engine) {
    host.failed(engine.error());
    return {};
  }
  host.run(**engine);
  return {};
}

Result<> run_host_of_ranks(const EngineOptions& options) {
  struct Rank {
    remote::ChildProcess process;
    std::int64_t began_us = 0;
    remote::Restarts restarts;
  };
  TRY_VOID(check_ranks(options));
  std::vector<Rank> ranks(static_cast<std::size_t>(options.parallel.ranks_of_host()));
  const int first = options.parallel.nodes.rank * options.parallel.ranks_of_host();
  std::vector<std::string> command = engine_command(options);
  command.emplace_back(kRunRankFlag);
  command.emplace_back();
  for (;;) {
    std::vector<pollfd> sockets;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      Rank& rank = ranks[i];
      if (rank.process.pid() < 0) {
        command.back() = std::to_string(first + static_cast<int>(i));
        TRY(rank.process, remote::ChildProcess::start(command));
        rank.began_us = now_us();
      }
      sockets.push_back({rank.process.socket.fd(), POLLIN, 0});
    }
    poll(sockets.data(), sockets.size(), -1);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (sockets[i].revents == 0) continue;
      Rank& rank = ranks[i];
      const std::string fate = rank.process.kill();
      log_warning("rank {}: {}; the process starts the rank again", first + static_cast<int>(i), fate);
      if (!rank.restarts.again(rank.began_us))
        return failure(ErrorCode::unavailable, "rank {} failed several times in a row; last error: {}",
                       first + static_cast<int>(i), fate);
      std::this_thread::sleep_for(std::chrono::milliseconds(kRestartMs));
    }
  }
}

Result<> run_host_of_engines(RuntimeOptions runtime) {
  TRY_VOID(settle(runtime));
  const EngineOptions& engine = runtime.engine;
  TRY(const remote::EngineMeetingOptions server, meeting_of(runtime));
  const std::vector<std::string> command = engine_command(engine);
  std::stop_source stop;  // when a process ends, all others must stop
  std::mutex mutex;
  Result<> ended;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < engine.parallel.data_parallel_size; ++i)
      threads.emplace_back([&, i] {
        std::vector<std::string> one = command;
        one.insert(one.end(), {kEngineIndexFlag, std::to_string(i)});
        const Result<> done =
            remote::run_engine_of_host(server, engine.first_index + i, one, stop.get_token());
        const std::lock_guard lock(mutex);
        if (!stop.stop_requested()) ended = done;
        stop.request_stop();
      });
  }
  return ended;
}

Result<> run_mpi_rank(RuntimeOptions runtime) {
  TRY_VOID(settle(runtime));
  return run_rank(runtime.engine, runtime.engine.parallel.mpi->rank);
}

}  // namespace octavo
