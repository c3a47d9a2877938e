// Reads typed lines, with editing keys and a persistent history.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace octavo {

class LineEditor {
 public:
  // Reads the history from the file, if it exists. An empty path: keeps no history.
  LineEditor(std::string prompt, std::filesystem::path history_file);
  ~LineEditor();  // writes the history
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // The next message, without its newline. Pasted text is one message, even with several lines. nullopt: end
  // of input (Ctrl-D). Ctrl-C gives an empty message.
  std::optional<std::string> read();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The history file of `octavo chat`: $XDG_STATE_HOME/octavo/chat_history, else
// ~/.local/state/octavo/chat_history. Empty without a home directory.
std::filesystem::path chat_history_file();

}  // namespace octavo
