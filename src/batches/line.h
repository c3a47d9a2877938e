// A line of a batch in OpenAI's format: {"custom_id", "method", "url", "body"}.
#pragma once

#include <boost/json/value.hpp>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"

namespace octavo::batches {

inline constexpr std::size_t kCustomIdBytesMax = 512;

struct Line {
  std::string custom_id;
  std::string url;
  std::shared_ptr<const std::string> body;  // JSON object
};

// Parses a line. Sets custom_id as soon as it is known, also if the line is refused. Errors:
// invalid_argument, with the name of the field.
Result<Line> read_line(const std::string& text, std::string& custom_id);

// Returns a line of the output file, in vLLM's format. If `status` is 0, no response was received and
// `body` is the error.
std::string output_line(const std::string& custom_id, std::int64_t status, const std::string& body);

// Returns 32 random hexadecimal digits.
std::string random_hex();

// Parses a text as JSON. If it is not JSON, returns it as a string.
boost::json::value json_or_text(const std::string& text);

struct NumberedText {
  std::int64_t number;  // line number in the file, from 1
  std::string text;
};

class LineReader {
 public:
  explicit LineReader(const std::string& path) : file_(path) {}

  bool is_open() const { return file_.is_open(); }
  std::optional<NumberedText> next();
  // Called after the last line. Returns whether the whole file was read without an error.
  bool complete() const { return file_.eof(); }

 private:
  std::ifstream file_;
  std::int64_t number_ = 0;
};

}  // namespace octavo::batches
