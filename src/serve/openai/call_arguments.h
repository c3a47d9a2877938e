// Reads the arguments of one call in its dialect and writes them as a JSON object, piece by piece as bytes
// become certain.
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
    again,   // there may be more in the text
    more,    // needs more text
    done,    // the object is complete; what closes the call is in the text
    broken,  // these are no arguments; what came before makes an object
  };

  virtual ~ArgumentsReader() = default;
  // Consumes the beginning of `text` (not empty) and appends to `out`. The result does not depend on how the
  // text is cut into pieces.
  virtual Step read(std::string& text, std::string& out) = 0;
  // The text has ended: closes the object if nothing but closing marks is missing. "": more is missing.
  virtual std::string end() const { return ""; }
};

// The object's text with only the last of several members of one name.
std::string without_repeats(std::string object);

// Reads a JSON object.
std::unique_ptr<ArgumentsReader> json_arguments();
// Reads the arguments after the head of a call. Keeps the dialect and the parameters.
std::unique_ptr<ArgumentsReader> arguments_reader(const grammar::ToolDialect& dialect,
                                                  const ToolParameters& parameters);
// Reads form `parameters`.
std::unique_ptr<ArgumentsReader> block_arguments(const grammar::ToolDialect& dialect,
                                                 const ToolParameters& parameters);

}  // namespace octavo::openai
