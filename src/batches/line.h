// A line of a batch's input file in OpenAI's format: {"custom_id", "method", "url", "body"}.
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

// Parses a line. Sets custom_id even if another field is invalid. If a field is invalid, returns
// invalid_argument with its name.
Result<Line> read_line(const std::string& text, std::string& custom_id);

// Returns a line of the output file, in vLLM's format. status, body: as in LineAnswer.
std::string output_line(const std::string& custom_id, std::int64_t status, const std::string& body);

std::string random_hex();

// Parses a text as JSON, or returns the text as a JSON string if the text is not JSON.
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
  // Call this after the last line. Returns whether the whole file was read without an error.
  bool complete() const { return file_.eof(); }

 private:
  std::ifstream file_;
  std::int64_t number_ = 0;
};

}  // namespace octavo::batches
