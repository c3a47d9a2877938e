// octavo chat
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <boost/json/object.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "app/commands.h"
#include "app/engine_flags.h"
#include "app/local_generation.h"
#include "app/runtime.h"
#include "app/sampling_flags.h"
#include "base/clock.h"

namespace octavo {
namespace {

using boost::json::array;
using boost::json::object;

struct ChatCommand {
  RuntimeOptions runtime;
  object sampling;
  std::string system;
};

std::atomic<bool> interrupted = false;  // by Ctrl-C, which ends an answer, not the program

struct Turn {
  std::string text;
  int tokens = 0;
  int cached_tokens = 0;
  int prompt_tokens = 0;
  double first_s = 0;
  double all_s = 0;
};

// Streams the answer to the conversation onto standard output.
Result<Turn> answer(Service& service, const object& body) {
  TRY(const GenerationPlan plan, plan_body(service, body));
  Arrivals arrivals;
  const std::int64_t started = now_us();
  TRY(LocalGeneration generation, LocalGeneration::start(service, plan, 0, arrivals));
  Turn turn;
  turn.prompt_tokens = generation.prompt_tokens();
  interrupted = false;
  while (!generation.finished()) {
    Arrivals::Arrival arrival;
    if (interrupted.exchange(false)) generation.abort();
    if (!arrivals.pop(arrival, 100)) continue;
    if (!arrival.output.error.empty()) return failure(ErrorCode::internal, "{}", arrival.output.error);
    const openai::AnswerPart part = generation.take(std::move(arrival.output));
    if (turn.tokens == 0) turn.first_s = static_cast<double>(now_us() - started) * 1e-6;
    turn.tokens += static_cast<int>(part.token_ids.size());
    turn.text += part.text;
    fmt::print("{}", part.text);
    std::fflush(stdout);
  }
  turn.cached_tokens = generation.cached_tokens();
  turn.all_s = static_cast<double>(now_us() - started) * 1e-6;
  return turn;
}

Result<> chat(ChatCommand& c) {
  TRY(const auto runtime, start_runtime(std::move(c.runtime)));
  if (!runtime->chat_template) return invalid("model", "this model has no chat template");
  std::signal(SIGINT, [](int) { interrupted = true; });
  const bool person = isatty(STDIN_FILENO) == 1;
  if (person)
    fmt::print("{}. /reset starts over, Ctrl-C ends an answer, Ctrl-D leaves.\n",
               runtime->loaded.spec.architecture);

  const auto opening = [&] {
    return c.system.empty() ? array{} : array{{{"role", "system"}, {"content", c.system}}};
  };
  array messages = opening();
  std::string line;
  while (true) {
    if (person) fmt::print("\n\x1b[1m> \x1b[0m"), std::fflush(stdout);
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    if (line == "/reset") {
      messages = opening();
      continue;
    }
    messages.push_back({{"role", "user"}, {"content", line}});
    object body = c.sampling;
    body["messages"] = messages;
    const auto turn = answer(*runtime->service, body);
    fmt::print("\n");
    if (!turn) {  // a conversation that grew too long, say: say so and go on without this turn
      fmt::print(stderr, "octavo: {}{}{}\n", turn.error().field, turn.error().field.empty() ? "" : ": ",
                 turn.error().message);
      messages.pop_back();
      continue;
    }
    messages.push_back({{"role", "assistant"}, {"content", turn->text}});
    if (person)
      fmt::print("\x1b[2m{} tokens, {:.1f}/s, first after {:.0f} ms, {} of {} prompt tokens cached\x1b[0m\n",
                 turn->tokens, turn->tokens / turn->all_s, turn->first_s * 1e3, turn->cached_tokens,
                 turn->prompt_tokens);
  }
  return {};
}

}  // namespace

void add_chat(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand("chat", "Talk to a model in the terminal");
  auto options = std::make_shared<ChatCommand>();
  add_engine_flags(*command, options->runtime.engine);
  add_sampling_flags(*command, options->sampling);
  command->add_option("--system", options->system, "System prompt");
  command->callback([options, &outcome] {
    if (const auto done = chat(*options); !done) outcome.report(done.error());
  });
}

}  // namespace octavo
