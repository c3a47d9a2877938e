// Lines of a batch in OpenAI's format: {"custom_id", "method", "url", "body"}.
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

// custom_id: set as soon as it is known, also if the line is refused. Errors (invalid_argument) name the
// field.
Result<Line> read_line(const std::string& text, std::string& custom_id);

// A line of the output file, in vLLM's format. status 0: there was no response, and `body` is the error.
std::string output_line(const std::string& custom_id, std::int64_t status, const std::string& body);

// 32 random hexadecimal digits.
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
  // After the last line. True: the file was read to its end, without an error.
  bool complete() const { return file_.eof(); }

 private:
  std::ifstream file_;
  std::int64_t number_ = 0;
};

}  // namespace octavo::batches
