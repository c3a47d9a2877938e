#include "serve/openai/call_arguments.h"

#include <utility>

#include "serve/openai/call_cursor.h"

namespace octavo::openai {

using grammar::ToolDialect;

namespace {

// A JSON object.
class JsonArguments final : public ArgumentsReader {
 public:
  Step read(std::string& text, std::string& out) override {
    const std::size_t size = scan_.take(text);
    out.append(text, 0, size);
    text.erase(0, size);
    return scan_.done() ? Step::done : Step::more;
  }

 private:
  JsonScan scan_;
};

// Literals of Python or of Gemma by their names, up to the closing bracket.
class LiteralArguments final : public ArgumentsReader {
 public:
  explicit LiteralArguments(const ToolDialect& dialect)
      : python_(dialect.form == ToolDialect::Form::python), quote_(dialect.quote) {}

  Step read(std::string& text, std::string& out) override {
    CallCursor end(text), next(text);
    if (end.literal(python_ ? ")" : "}")) {
      out += first_ ? "{}" : "}";
      text.erase(0, end.at());
      return Step::done;
    }
    std::string name, value;
    if ((first_ || next.literal(",")) && next.name(name) && next.literal(python_ ? "=" : ":") &&
        (python_ ? next.python(value) : next.gemma(value, quote_))) {
      text.erase(0, next.at());
      out += std::exchange(first_, false) ? "{\"" : ", \"";
      out += name + "\": " + value;
      return Step::again;
    }
    if (end.starved() || next.starved()) return Step::more;
    out += first_ ? "{}" : "}";
    return Step::broken;
  }

 private:
  const bool python_;
  const std::string_view quote_;
  bool first_ = true;
};

}  // namespace

std::unique_ptr<ArgumentsReader> arguments_reader(const ToolDialect& dialect,
                                                  const ToolParameters& parameters) {
  switch (dialect.form) {
    case ToolDialect::Form::object:
    case ToolDialect::Form::named:
    case ToolDialect::Form::harmony:
      return std::make_unique<JsonArguments>();
    case ToolDialect::Form::parameters:
      return block_arguments(dialect, parameters);
    case ToolDialect::Form::python:
    case ToolDialect::Form::gemma:
      return std::make_unique<LiteralArguments>(dialect);
  }
  return nullptr;
}

}  // namespace octavo::openai
