// Reads the arguments of one tool call in a model's dialect and writes them as a JSON object. Writes each
// piece of the object as soon as no later text can change it.
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
    again,   // call read() again: `text` may contain more of the arguments
    more,    // read() needs more text
    done,    // the object is complete; the closing marker of the call is still in the text
    broken,  // `text` is invalid; `out` contains a complete object, made from the arguments before the error
  };

  virtual ~ArgumentsReader() = default;
  // Consumes the beginning of `text`, which must not be empty, and appends JSON to `out`. The result does
  // not depend on how the text is split into pieces.
  virtual Step read(std::string& text, std::string& out) = 0;
  // Called at the end of the output. If only closing brackets are missing, returns them; otherwise returns
  // "".
  virtual std::string end() const { return ""; }
};

// Removes duplicate members from a JSON object. Keeps the last member of each name.
std::string without_repeats(std::string object);

std::unique_ptr<ArgumentsReader> json_arguments();
// Returns a reader for the arguments after the head of a call (call_head.h). Keeps references to both
// arguments.
std::unique_ptr<ArgumentsReader> arguments_reader(const grammar::ToolDialect& dialect,
                                                  const ToolParameters& parameters);
// Returns a reader for dialects of the form `parameters`, which write each argument separately.
std::unique_ptr<ArgumentsReader> block_arguments(const grammar::ToolDialect& dialect,
                                                 const ToolParameters& parameters);

}  // namespace octavo::openai
