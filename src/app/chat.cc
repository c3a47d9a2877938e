// octavo chat
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "app/chat_backends.h"
#include "app/commands.h"
#include "app/environment.h"
#include "app/line_editor.h"
#include "app/sampling_flags.h"
#include "local/engine_flags.h"

namespace octavo {
namespace {

using boost::json::array;
using boost::json::object;

struct ChatCommand {
  RuntimeOptions runtime;
  object sampling;
  std::string system;
  std::string quick;  // a single question; "": a conversation
  std::string url;
  std::string api_key;
};

std::atomic<bool> interrupted = false;  // set by Ctrl-C, which ends the answer

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

  void reset() { reset(options_.system); }
  void reset(const std::string& system) {
    messages_.clear();
    if (!system.empty()) messages_.push_back({{"role", "system"}, {"content", system}});
    questions_ = 0;
  }
  int questions() const { return questions_; }

  // Asks a question. An error leaves the conversation unchanged.
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
    ++questions_;
    return {};
  }

 private:
  ChatBackend& backend_;
  const ChatCommand& options_;
  array messages_;
  int questions_ = 0;
};

constexpr std::string_view kHelp =
    "/reset         start a new conversation\n/system TEXT   start a new conversation with this system "
    "prompt\n/help          show this list\n/quit          exit, as Ctrl-D does\nCtrl-C stops an answer. If "
    "a message begins with a slash, put a space before the slash.\n";

// Runs a slash command. Returns false to end the program.
bool obey(std::string_view line, Conversation& conversation) {
  const std::string_view command = line.substr(0, line.find(' '));
  if (command == "/quit" || command == "/exit") return false;
  if (command == "/reset") {
    conversation.reset();
    fmt::print("A new conversation.\n");
  } else if (command == "/system") {
    conversation.reset(std::string(line.substr(std::min(command.size() + 1, line.size()))));
    fmt::print("A new conversation.\n");
  } else if (command == "/help") {
    fmt::print("{}", kHelp);
  } else {
    fmt::print(stderr, "the command {} does not exist; /help lists all commands\n", command);
  }
  std::fflush(stdout);
  return true;
}

// Returns false to end the program.
bool take_message(const std::string& message, Conversation& conversation, Outcome& outcome) {
  if (message.starts_with('/')) return obey(message, conversation);
  if (message.find_first_not_of(" \t\n") == std::string::npos) return true;
  const auto asked = conversation.ask(message);
  if (asked) return true;
  outcome.report(asked.error());
  if (conversation.questions() > 0 && asked.error().code == ErrorCode::invalid_argument)
    fmt::print(stderr, "The conversation has not changed. If it is too long, /reset starts a new one.\n");
  return true;
}

// Reads messages: with the line editor on a terminal, otherwise line by line.
void read_messages(Conversation& conversation, Outcome& outcome) {
  if (isatty(STDIN_FILENO) == 1) {
    LineEditor editor("> ", chat_history_file());
    for (;;) {
      fmt::print("\n");
      std::fflush(stdout);
      const auto message = editor.read();
      if (!message || !take_message(*message, conversation, outcome)) return;
    }
  }
  std::string line;
  while (std::getline(std::cin, line))
    if (!take_message(line, conversation, outcome)) return;
}

Result<> chat(ChatCommand& c, Outcome& outcome) {
  std::unique_ptr<ChatBackend> backend;
  if (c.url.empty()) {
    TRY(auto runtime, start_runtime(std::move(c.runtime)));
    TRY(backend, local_chat(std::move(runtime)));
  } else {
    TRY(backend, remote_chat(c.url, c.api_key));
  }
  struct sigaction on_interrupt = {};
  on_interrupt.sa_handler = [](int) { interrupted = true; };
  // without SA_RESTART, so that a signal interrupts reading a line
  sigaction(SIGINT, &on_interrupt, nullptr);
  Conversation conversation(*backend, c);
  if (!c.quick.empty()) return conversation.ask(c.quick);
  if (isatty(STDIN_FILENO) == 1)
    fmt::print("{}. /help lists the commands, Ctrl-C stops an answer, Ctrl-D exits.\n", backend->name());
  read_messages(conversation, outcome);
  return {};
}

}  // namespace

void add_chat(CLI::App& program, Outcome& outcome) {
  CLI::App* command =
      program.add_subcommand("chat", "Chat with a model in the terminal; the model runs here or on a server");
  auto options = std::make_shared<ChatCommand>();
  add_engine_flags(*command, options->runtime.engine);
  add_hub_flags(*command, options->runtime.hub, environment);
  add_sampling_flags(*command, options->sampling);
  command->add_option("--system,--system-prompt", options->system, "System prompt");
  command->add_option("-q,--quick", options->quick,
                      "Question to answer before the program exits, instead of a conversation");
  command->add_option("--url", options->url,
                      "Server that runs the model, as HOST:PORT or http(s)://HOST:PORT; without it the model "
                      "runs in this process");
  command->add_option("--api-key", options->api_key, "API key to send to the server")
      ->envname("OCTAVO_API_KEY");
  outcome.runs(*command, options, [&outcome](ChatCommand& c) { return chat(c, outcome); });
}

}  // namespace octavo
