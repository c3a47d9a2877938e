#include "serve/openai/gemma_value.h"

#include "grammar/json_value.h"
#include "serve/openai/python_literal.h"

namespace octavo::openai {

namespace {

constexpr int kGemmaDepthMax = 64;  // maximum depth of nested collections

std::string json_quoted(std::string_view text) { return '"' + grammar::json_escape(text) + '"'; }

bool quoted_text(CallCursor& cursor, std::string_view quote, std::string& out) {
  const std::size_t size = cursor.rest().find(quote);
  if (size == std::string_view::npos) return cursor.starve();
  out = cursor.rest().substr(0, size);
  cursor.skip(size + quote.size());
  return true;
}

// Converts a word, a number or other unquoted text to JSON.
std::string bare_json(const std::string& text) {
  std::string literal;
  const std::string closed = text + ")";
  CallCursor cursor(closed);
  if (!text.empty() && read_python(cursor, literal) && cursor.at() == text.size()) return literal;
  return json_quoted(text);
}

bool read_items(CallCursor& cursor, std::string_view quote, char end, int depth, std::string& out);

bool read_value(CallCursor& cursor, std::string_view quote, int depth, GemmaValue& value) {
  if (!cursor.ready() || depth > kGemmaDepthMax) return false;
  if (cursor.literal(quote)) {
    std::string content;
    if (!quoted_text(cursor, quote, content)) return false;
    value.json = json_quoted(content);
    return true;
  }
  if (cursor.starved()) return false;
  const char first = cursor.rest().front();
  if (first == '[' || first == '{') {
    cursor.skip(1);
    return read_items(cursor, quote, first == '[' ? ']' : '}', depth + 1, value.json);
  }
  if (first == '"' || first == '\'') return read_python(cursor, value.json);
  const std::size_t size = cursor.rest().find_first_of(",]}");
  if (size == std::string_view::npos) return cursor.starve();
  value.bare = trimmed(cursor.rest().substr(0, size));
  value.is_bare = true;
  value.json = bare_json(value.bare);
  cursor.skip(size);
  return true;
}

bool read_items(CallCursor& cursor, std::string_view quote, char end, int depth, std::string& out) {
  out = end == ']' ? "[" : "{";
  for (bool first = true; !cursor.next_is(end); first = false) {
    if (cursor.starved() || (!first && !cursor.literal(","))) return false;
    if (cursor.next_is(end)) break;
    if (cursor.starved()) return false;
    if (!first) out += ", ";
    std::string name;
    if (end == '}' && !read_gemma_name(cursor, quote, name)) return false;
    GemmaValue value;
    if (!read_value(cursor, quote, depth, value)) return false;
    if (end == '}') out += json_quoted(name) + ": ";
    out += value.json;
  }
  if (cursor.starved()) return false;
  cursor.skip(1);
  out += end;
  return true;
}

}  // namespace

bool read_gemma(CallCursor& cursor, std::string_view quote, GemmaValue& value) {
  return read_value(cursor, quote, 0, value);
}

bool read_gemma_name(CallCursor& cursor, std::string_view quote, std::string& name) {
  if (!cursor.ready()) return false;
  for (const std::string_view mark : {quote, std::string_view("\""), std::string_view("'")}) {
    if (cursor.literal(mark)) return quoted_text(cursor, mark, name) && cursor.literal(":");
    if (cursor.starved()) return false;
  }
  const std::size_t size = cursor.rest().find_first_of(":,{}[]");
  if (size == std::string_view::npos) return cursor.starve();
  name = trimmed(cursor.rest().substr(0, size));
  return !name.empty() && (cursor.skip(size), cursor.literal(":"));
}

}  // namespace octavo::openai
