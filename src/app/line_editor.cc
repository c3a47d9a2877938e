#include "app/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/environment.h"

namespace octavo {
namespace {

constexpr int kHistoryLines = 1000;
constexpr int kPasteMs = 30;  // lines that arrive within this time are pasted

bool more_input(int within_ms) {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&input, 1, within_ms) > 0 && (input.revents & POLLIN) != 0;
}

}  // namespace

struct LineEditor::State {
  std::string prompt;
  std::filesystem::path file;
  History* history = nullptr;
  EditLine* editor = nullptr;

  static const char* prompt_of(EditLine* editor) {
    void* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return static_cast<State*>(state)->prompt.c_str();
  }
};

LineEditor::LineEditor(std::string prompt, std::filesystem::path history_file)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.prompt = std::move(prompt);
  s.file = std::move(history_file);
  std::setlocale(LC_CTYPE, "");  // a key is a character and not a byte
  s.history = history_init();
  s.editor = el_init("octavo", stdin, stdout, stderr);
  HistEvent event;
  history(s.history, &event, H_SETSIZE, kHistoryLines);
  history(s.history, &event, H_SETUNIQUE, 1);
  if (!s.file.empty()) history(s.history, &event, H_LOAD, s.file.c_str());
  el_set(s.editor, EL_CLIENTDATA, state_.get());
  el_set(s.editor, EL_PROMPT, &State::prompt_of);
  el_set(s.editor, EL_EDITOR, "emacs");
  el_set(s.editor, EL_HIST, history, s.history);
  el_set(s.editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_source(s.editor, nullptr);  // reads the user's ~/.editrc
}

LineEditor::~LineEditor() {
  if (!state_->file.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(state_->file.parent_path(), ignored);
    HistEvent event;
    history(state_->history, &event, H_SAVE, state_->file.c_str());
  }
  el_end(state_->editor);
  history_end(state_->history);
}

std::optional<std::string> LineEditor::read() {
  std::string message;
  do {
    int count = 0;
    errno = 0;
    const char* line = el_gets(state_->editor, &count);
    if (line == nullptr || count <= 0) {
      if (errno == EINTR) return std::string();
      return message.empty() ? std::nullopt : std::optional(std::move(message));
    }
    message += std::string_view(line, static_cast<std::size_t>(count));
  } while (more_input(kPasteMs));
  while (message.ends_with('\n') || message.ends_with('\r')) message.pop_back();
  if (message.find_first_not_of(" \t\n") != std::string::npos) {
    HistEvent event;
    history(state_->history, &event, H_ENTER, message.c_str());
  }
  return message;
}

std::filesystem::path chat_history_file() {
  std::filesystem::path state = environment("XDG_STATE_HOME");
  if (state.empty()) {
    const std::filesystem::path home = environment("HOME");
    if (home.empty()) return {};
    state = home / ".local" / "state";
  }
  return state / "octavo" / "chat_history";
}

}  // namespace octavo
