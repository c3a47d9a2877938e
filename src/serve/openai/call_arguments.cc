#include "serve/openai/call_arguments.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "grammar/json_value.h"
#include "serve/openai/call_cursor.h"
#include "serve/openai/gemma_value.h"
#include "serve/openai/python_literal.h"

namespace octavo::openai {

using grammar::ToolDialect;

namespace {

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

// Reads pairs NAME=VALUE or NAME:VALUE up to the closing bracket of the call.
class NamedArguments : public ArgumentsReader {
 public:
  explicit NamedArguments(std::string_view end) : end_(end) {}

  Step read(std::string& text, std::string& out) final {
    CallCursor end(text), next(text);
    if (!first_) next.literal(",");
    if (end.literal(end_) || (!next.starved() && next.literal(end_))) {
      out += first_ ? "{}" : "}";
      text.erase(0, std::max(end.at(), next.at()));
      return Step::done;
    }
    std::string name, value;
    if ((first_ || next.at() > 0) && argument(next, name, value)) {
      text.erase(0, next.at());
      out += std::exchange(first_, false) ? "{\"" : ", \"";
      out += grammar::json_escape(name) + "\": " + value;
      return Step::again;
    }
    if (end.starved() || next.starved()) return Step::more;
    out += first_ ? "{}" : "}";
    return Step::broken;
  }

 private:
  virtual bool argument(CallCursor& cursor, std::string& name, std::string& value) = 0;

  const std::string_view end_;
  bool first_ = true;
};

class PythonArguments final : public NamedArguments {
 public:
  explicit PythonArguments(const ToolDialect& dialect)
      : NamedArguments(")"), nested_quotes_(dialect.nested_quotes) {}

 private:
  bool argument(CallCursor& cursor, std::string& name, std::string& value) override {
    return cursor.name(name) && cursor.literal("=") && read_python(cursor, value, nested_quotes_);
  }

  const bool nested_quotes_;
};

// The tool's schema decides the type of a bare value, also within lists and objects.
class GemmaArguments final : public NamedArguments {
 public:
  GemmaArguments(const ToolDialect& dialect, const ToolParameters& parameters)
      : NamedArguments("}"), quote_(dialect.quote), parameters_(parameters) {}

 private:
  bool argument(CallCursor& cursor, std::string& name, std::string& value) override {
    GemmaValue read;
    if (!read_gemma_name(cursor, quote_, name) || !read_gemma(cursor, quote_, read)) return false;
    const bool typed = read.is_bare && parameters_.typed(name);
    value = typed ? parameters_.value(name, read.bare) : parameters_.fitted(name, read.json);
    return true;
  }

  const std::string_view quote_;
  const ToolParameters& parameters_;
};

}  // namespace

std::string without_repeats(std::string object) {
  std::vector<std::pair<std::string, std::string>> members;
  std::map<std::string, std::size_t> index_of;
  CallCursor cursor(object);
  std::string name, value;
  bool repeated = false;
  for (bool more = cursor.literal("{"); more; more = cursor.literal(",")) {
    if (!cursor.string(name) || !cursor.literal(":") || !cursor.value(value)) return object;
    const auto [found, fresh] = index_of.emplace(name, members.size());
    if (fresh)
      members.emplace_back(name, value);
    else
      members[found->second].second = value;
    repeated = repeated || !fresh;
  }
  if (!repeated || !cursor.literal("}")) return object;
  std::string out;
  for (const auto& [key, content] : members)
    out += (out.empty() ? "{\"" : ", \"") + grammar::json_escape(key) + "\": " + content;
  return out + '}';
}

std::unique_ptr<ArgumentsReader> json_arguments() { return std::make_unique<JsonArguments>(); }

std::unique_ptr<ArgumentsReader> arguments_reader(const ToolDialect& dialect,
                                                  const ToolParameters& parameters) {
  switch (dialect.form) {
    case ToolDialect::Form::object:
    case ToolDialect::Form::named:
    case ToolDialect::Form::harmony:
      return json_arguments();
    case ToolDialect::Form::parameters:
      return block_arguments(dialect, parameters);
    case ToolDialect::Form::python:
      return std::make_unique<PythonArguments>(dialect);
    case ToolDialect::Form::gemma:
      return std::make_unique<GemmaArguments>(dialect, parameters);
  }
  return nullptr;
}

}  // namespace octavo::openai
