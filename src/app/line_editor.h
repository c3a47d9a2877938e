// Reads typed lines, with editing keys and a persistent history.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace octavo {

class LineEditor {
 public:
  // Reads the history from the file, if it exists. Empty path: no history is kept.
  LineEditor(std::string prompt, std::filesystem::path history_file);
  ~LineEditor();  // writes the history
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Reads the next message, without its newline. Pasted text is one message, even if it has several lines.
  // nullopt: end of input (Ctrl-D). After Ctrl-C the message is empty.
  std::optional<std::string> read();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The history file of `octavo chat`: $XDG_STATE_HOME/octavo/chat_history, else
// ~/.local/state/octavo/chat_history. Empty if there is no home directory.
std::filesystem::path chat_history_file();

}  // namespace octavo
