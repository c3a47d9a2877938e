// Reads the arguments of one call in its dialect and writes them as a JSON object. Each piece is written as
// soon as later text cannot change it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "grammar/tool_dialect.h"
#include "serve/openai/tool_parameters.h"

namespace octavo::openai {

class ArgumentsReader {
 public:
  enum class Step : std::uint8_t {
    again,   // call read() again: the text may contain more
    more,    // needs more text
    done,    // the object is complete; the closing mark of the call is still in the text
    broken,  // the text is not valid arguments; the part before it makes a complete object
  };

  virtual ~ArgumentsReader() = default;
  // Consumes the beginning of `text` (not empty) and appends JSON to `out`. The result does not depend on how
  // the text is split into pieces.
  virtual Step read(std::string& text, std::string& out) = 0;
  // Called at the end of the text. Returns the text that closes the object if only closing marks are missing;
  // otherwise "".
  virtual std::string end() const { return ""; }
};

// Removes duplicate members from the object's text; the last one of each name stays.
std::string without_repeats(std::string object);

std::unique_ptr<ArgumentsReader> json_arguments();
// Reads the arguments after the head of a call. Keeps references to the dialect and the parameters.
std::unique_ptr<ArgumentsReader> arguments_reader(const grammar::ToolDialect& dialect,
                                                  const ToolParameters& parameters);
// Reads arguments in dialects of the form `parameters`.
std::unique_ptr<ArgumentsReader> block_arguments(const grammar::ToolDialect& dialect,
                                                 const ToolParameters& parameters);

}  // namespace octavo::openai
