// octavo chat
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "app/chat_backends.h"
#include "app/commands.h"
#include "app/engine_flags.h"
#include "app/sampling_flags.h"

namespace octavo {
namespace {

using boost::json::array;
using boost::json::object;

struct ChatCommand {
  RuntimeOptions runtime;
  object sampling;
  std::string system;
  std::string quick;  // one question instead of a conversation
  std::string url;
  std::string api_key;
};

std::atomic<bool> interrupted = false;  // by Ctrl-C, which ends an answer, not the program

bool show(std::string_view text) {
  fmt::print("{}", text);
  std::fflush(stdout);
  return !interrupted.exchange(false);
}

void print_timings(const Turn& turn) {
  const double between_s = turn.tokens > 1 ? (turn.all_s - turn.first_s) / (turn.tokens - 1) : 0;
  const std::string cached = turn.cached_tokens > 0 ? fmt::format(" ({} cached)", turn.cached_tokens) : "";
  fmt::print(stderr, "{} prompt tokens{}, {} tokens, {:.1f} tokens/s, TTFT {:.1f} ms, ITL {:.2f} ms\n",
             turn.prompt_tokens, cached, turn.tokens, turn.tokens / turn.all_s, turn.first_s * 1e3,
             between_s * 1e3);
}

class Conversation {
 public:
  Conversation(ChatBackend& backend, const ChatCommand& options) : backend_(backend), options_(options) {
    reset();
  }

  void reset() {
    messages_.clear();
    if (!options_.system.empty()) messages_.push_back({{"role", "system"}, {"content", options_.system}});
  }

  // An error leaves the conversation as it was.
  Result<> ask(const std::string& question) {
    object body = options_.sampling;
    array messages = messages_;
    messages.push_back({{"role", "user"}, {"content", question}});
    body["messages"] = messages;
    interrupted = false;
    TRY(const Turn turn, backend_.answer(body, show));
    fmt::print("\n");
    std::fflush(stdout);
    print_timings(turn);
    messages_ = std::move(messages);
    messages_.push_back({{"role", "assistant"}, {"content", turn.text}});
    return {};
  }

 private:
  ChatBackend& backend_;
  const ChatCommand& options_;
  array messages_;
};

void read_questions(Conversation& conversation, Outcome& outcome) {
  const bool person = isatty(STDIN_FILENO) == 1;
  std::string line;
  while (true) {
    if (person) fmt::print("\n> ");
    std::fflush(stdout);
    if (!std::getline(std::cin, line)) return;
    if (line == "/reset") {
      conversation.reset();
    } else if (!line.empty()) {
      if (const auto asked = conversation.ask(line); !asked) outcome.report(asked.error());
    }
  }
}

Result<> chat(ChatCommand& c, Outcome& outcome) {
  std::unique_ptr<ChatBackend> backend;
  if (c.url.empty()) {
    TRY(auto runtime, start_runtime(std::move(c.runtime)));
    TRY(backend, local_chat(std::move(runtime)));
  } else {
    TRY(backend, remote_chat(c.url, c.api_key));
  }
  std::signal(SIGINT, [](int) { interrupted = true; });
  Conversation conversation(*backend, c);
  if (!c.quick.empty()) return conversation.ask(c.quick);
  if (isatty(STDIN_FILENO) == 1)
    fmt::print("{}. /reset starts over, Ctrl-C ends an answer, Ctrl-D leaves.\n", backend->name());
  read_questions(conversation, outcome);
  return {};
}

}  // namespace

void add_chat(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand("chat", "Talk to a model in the terminal, here or at a server");
  auto options = std::make_shared<ChatCommand>();
  add_engine_flags(*command, options->runtime.engine);
  add_sampling_flags(*command, options->sampling);
  command->add_option("--system,--system-prompt", options->system, "System prompt");
  command->add_option("-q,--quick", options->quick, "Ask this one question and leave");
  command->add_option("--url", options->url,
                      "Server to talk to, http://HOST:PORT, instead of an engine in this process");
  command->add_option("--api-key", options->api_key, "Key to show to the server")->envname("OCTAVO_API_KEY");
  command->callback([options, &outcome] {
    if (const auto done = chat(*options, outcome); !done) outcome.report(done.error());
  });
}

}  // namespace octavo
