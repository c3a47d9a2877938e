// Reads names, strings, markers and JSON values of tool calls in a text that is still being generated.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace octavo::openai {

// Finds the end of a JSON object, array or string in a text that arrives in pieces.
class JsonScan {
 public:
  // Returns the number of bytes of the text that belong to the value. done() is true after the last byte of
  // the value.
  std::size_t take(std::string_view text);
  bool done() const { return done_; }

 private:
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool done_ = false;
};

// Each reading function skips white space, then tries to read. If it returns false, starved() returns whether
// more text could change this result. After a failure, do not read with this cursor again.
class CallCursor {
 public:
  explicit CallCursor(std::string_view text) : text_(text) {}

  // Reads `literal`. Where `literal` has white space, and between two tags, the text may have a different
  // amount of white space.
  bool literal(std::string_view literal);
  // Reads a name of letters, digits, '_', '-' and '.'.
  bool name(std::string& out);
  // Reads a JSON string and decodes it.
  bool string(std::string& out);
  // Reads any JSON value. out: its original text.
  bool value(std::string& out);
  // Skips fewer than bytes_max bytes, up to the next `byte`, which stays unread.
  bool skip_to(char byte, std::size_t bytes_max);
  // Returns whether the next byte is `byte`, without reading it.
  bool next_is(char byte);

  // Skips white space, and returns whether more bytes follow. For values that other classes read.
  bool ready();
  std::string_view rest() const { return text_.substr(at_); }
  void skip(std::size_t bytes) { at_ += bytes; }
  // Makes starved() true. Returns false.
  bool starve() { return !(starved_ = true); }

  bool starved() const { return starved_; }
  std::size_t at() const { return at_; }

 private:
  bool word(std::string& out);

  std::string_view text_;
  std::size_t at_ = 0;
  bool starved_ = false;
};

bool is_space(char c);
std::string_view trimmed(std::string_view text);
std::size_t spaces_at_end(std::string_view text);
// Returns the number of bytes at the end of the text that could be an incomplete marker.
std::size_t unsettled(std::string_view text, std::string_view mark);
bool is_json(const std::string& text);
// Converts arguments that are one JSON value to a JSON object. raw: an object, null, or a string that is
// empty or contains an object. Returns "" for other values.
std::string whole_arguments(const std::string& raw);

}  // namespace octavo::openai
