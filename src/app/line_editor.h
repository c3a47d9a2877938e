// Reads lines from the terminal, with editing keys and a history in a file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace octavo {

class LineEditor {
 public:
  // Reads the history file if it exists. An empty path disables the history.
  LineEditor(std::string prompt, std::filesystem::path history_file);
  ~LineEditor();  // writes the history
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Returns the next message without its newline. Pasted text is one message, even if it has several lines.
  // Returns "" after Ctrl-C, and nullopt at the end of the input (Ctrl-D).
  std::optional<std::string> read();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns $XDG_STATE_HOME/octavo/chat_history or ~/.local/state/octavo/chat_history. Empty without a home
// folder.
std::filesystem::path chat_history_file();

}  // namespace octavo
