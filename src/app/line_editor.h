// Reads typed lines, with editing keys and a persistent history.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace octavo {

class LineEditor {
 public:
  // Reads the history from the file, where there is one. An empty path: no history is kept.
  LineEditor(std::string prompt, std::filesystem::path history_file);
  ~LineEditor();  // writes the history
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // The next message, without its newline. What is pasted is one message, whatever its lines. nullopt: the
  // input has ended (Ctrl-D). Ctrl-C gives an empty message.
  std::optional<std::string> read();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Where `octavo chat` keeps its history: $XDG_STATE_HOME/octavo/chat_history, else ~/.local/state/octavo/
// chat_history. Empty when there is no home.
std::filesystem::path chat_history_file();

}  // namespace octavo
