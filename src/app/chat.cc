// octavo chat: talks to a model in the terminal.
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
#include <vector>

#include "app/chat_backends.h"
#include "app/chat_message.h"
#include "app/chat_screen.h"
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
  std::string quick;  // one question; "": a session
  std::string url;
  std::string api_key;
  std::string tools_file;
  std::vector<std::string> images;  // for the first message
};

// set by Ctrl-C, which stops the answer
std::atomic<bool> interrupted = false;

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
    images_.clear();
    open_calls_.clear();
    if (!system.empty()) messages_.push_back({{"role", "system"}, {"content", system}});
    questions_ = 0;
  }
  int questions() const { return questions_; }
  void set_tools(array tools) { tools_ = std::move(tools); }

  Result<> attach(const std::string& path) {
    TRY(std::string url, image_url(path));
    images_.emplace_back(std::move(url));
    return {};
  }

  // Sends a question. Tool calls without a result get an empty one. After an error, the session is
  // unchanged.
  Result<> ask(const std::string& question) {
    array messages = messages_;
    for (const auto& call : open_calls_) messages.push_back(tool_message(call, ""));
    messages.push_back(user_message(question, images_));
    TRY_VOID(request(std::move(messages)));
    images_.clear();
    ++questions_;
    return {};
  }

  // Sets the result of the first tool call that has none. When all calls have a result, the model answers.
  Result<> answer_call(std::string_view result) {
    if (open_calls_.empty())
      return invalid("/result", "the model has not called a tool, so no result is needed");
    array messages = messages_;
    messages.push_back(tool_message(open_calls_.front(), result));
    if (open_calls_.size() == 1) return request(std::move(messages));
    messages_ = std::move(messages);
    open_calls_.erase(open_calls_.begin());
    return {};
  }

 private:
  Result<> request(array messages) {
    object body = options_.sampling;
    body["messages"] = messages;
    if (!tools_.empty()) body["tools"] = tools_;
    interrupted = false;
    ChatScreen screen(isatty(STDOUT_FILENO) == 1);
    const auto show = [&](const Piece& piece) {
      if (!piece.text.empty()) screen.show(piece);
      return !interrupted.exchange(false);
    };
    TRY(const Turn turn, backend_.answer(body, show));
    screen.finish();
    print_timings(turn);
    messages_ = std::move(messages);
    messages_.push_back(assistant_message(turn));
    open_calls_ = turn.calls;
    if (!open_calls_.empty()) fmt::print(stderr, "/result TEXT sends the result of a call.\n");
    return {};
  }

  ChatBackend& backend_;
  const ChatCommand& options_;
  array messages_;
  array tools_;
  // data URLs for the next message
  array images_;
  // tool calls of the last answer that have no result yet
  array open_calls_;
  int questions_ = 0;
};

constexpr std::string_view kHelp =
    "/reset         forget the conversation\n"
    "/system TEXT   forget it and start again with this system prompt\n"
    "/image FILE    add an image to the next message\n"
    "/result TEXT   the result of a call that the model has made (--tools)\n"
    "/help          this list\n"
    "/quit          leave, as Ctrl-D does\n"
    "Ctrl-C ends an answer. If a message begins with a slash, put a space before it.\n";

// Runs a slash command. Returns false to quit.
bool obey(std::string_view line, Conversation& conversation, Outcome& outcome) {
  const std::string_view command = line.substr(0, line.find(' '));
  const std::string rest(line.substr(std::min(command.size() + 1, line.size())));
  if (command == "/quit" || command == "/exit") return false;
  if (command == "/reset") {
    conversation.reset();
    fmt::print("A new conversation.\n");
  } else if (command == "/system") {
    conversation.reset(rest);
    fmt::print("A new conversation.\n");
  } else if (command == "/image" || command == "/result") {
    const Result<> done = command == "/image" ? conversation.attach(rest) : conversation.answer_call(rest);
    if (!done) outcome.report(done.error());
  } else if (command == "/help") {
    fmt::print("{}", kHelp);
  } else {
    fmt::print(stderr, "the command {} does not exist; /help lists all commands\n", command);
  }
  std::fflush(stdout);
  return true;
}

// Returns false to quit.
bool take_message(const std::string& message, Conversation& conversation, Outcome& outcome) {
  if (message.starts_with('/')) return obey(message, conversation, outcome);
  if (message.find_first_not_of(" \t\n") == std::string::npos) return true;
  const auto sent = conversation.ask(message);
  if (sent) return true;
  outcome.report(sent.error());
  if (conversation.questions() > 0 && sent.error().code == ErrorCode::invalid_argument)
    fmt::print(stderr, "The conversation has not changed. If it is too long, /reset starts a new one.\n");
  return true;
}

// Uses the line editor on a terminal, and otherwise reads lines.
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
  array tools;
  if (!c.tools_file.empty()) {
    TRY(tools, read_tools_file(c.tools_file));
  }
  std::unique_ptr<ChatBackend> backend;
  if (c.url.empty()) {
    c.runtime.tool_call_parser = c.runtime.reasoning_parser = "auto";
    TRY(auto runtime, start_runtime(std::move(c.runtime)));
    TRY(backend, local_chat(std::move(runtime)));
  } else {
    TRY(backend, remote_chat(c.url, c.api_key));
  }
  struct sigaction on_interrupt = {};
  on_interrupt.sa_handler = [](int) { interrupted = true; };
  // Without SA_RESTART, so that a signal interrupts reading a line.
  sigaction(SIGINT, &on_interrupt, nullptr);
  Conversation conversation(*backend, c);
  conversation.set_tools(std::move(tools));
  for (const std::string& image : c.images) TRY_VOID(conversation.attach(image));
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
  command->add_option("-q,--quick", options->quick, "Ask this one question and exit");
  command
      ->add_option("--image", options->images,
                   "Image of the first message (PNG, JPEG, WebP or GIF); repeatable")
      ->allow_extra_args(false);
  command->add_option("--tools", options->tools_file,
                      "JSON file with a list of tools that the model may call; /result TEXT answers a call");
  command->add_option(
      "--url", options->url,
      "Server to talk to, HOST:PORT or http(s)://HOST:PORT, instead of an engine in this process");
  command->add_option("--api-key", options->api_key, "API key to send to the server")
      ->envname("OCTAVO_API_KEY");
  outcome.runs(*command, options, [&outcome](ChatCommand& c) { return chat(c, outcome); });
}

}  // namespace octavo
