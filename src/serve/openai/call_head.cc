#include "serve/openai/call_head.h"

#include <algorithm>
#include <utility>

#include "grammar/json_value.h"

namespace octavo::openai {

using grammar::ToolDialect;

namespace {

// Maximum length of words that models write between the marker of a list and the list.
constexpr std::size_t kWordsBytesMax = 256;

void skip_quote(CallCursor& cursor) {
  if (cursor.next_is('"') || cursor.next_is('\'')) cursor.skip(1);
}

// Accepts other text than the dialect's marker between name and arguments, as models write it: nothing, an
// id, or a code fence.
bool loose_name_end(CallCursor& cursor, const ToolDialect& dialect) {
  std::string id;
  if (!dialect.id_mark.empty() && cursor.literal(dialect.id_mark) && !cursor.name(id)) return false;
  if (!cursor.starved()) cursor.literal(dialect.name_end);
  if (!cursor.starved()) cursor.literal("```json");
  return !cursor.starved() && cursor.next_is('{');
}

// Returns NAME from "NAME.0". If the name does not end with a number, returns the whole name.
std::string_view without_number(std::string_view name) {
  const std::size_t dot = name.find_last_not_of("0123456789");
  const bool numbered = dot != std::string_view::npos && dot + 1 < name.size() && name[dot] == '.';
  return numbered ? name.substr(0, dot) : name;
}

}  // namespace

bool HeadReader::own_opening(CallCursor& cursor, bool first) const {
  if (!first)
    return cursor.literal(dialect_.list ? "," : dialect_.call.separator) &&
           cursor.literal(dialect_.call.begin);
  return cursor.literal(dialect_.begin) && (!dialect_.list || cursor.literal("[")) &&
         cursor.literal(dialect_.call.begin);
}

// Models that were trained on several dialects may write the JSON object of Hermes after this dialect's
// marker.
bool HeadReader::object_opening(CallCursor& cursor, bool first) const {
  if (dialect_.form == ToolDialect::Form::object || dialect_.trigger.empty()) return false;
  if (!first && !cursor.literal(dialect_.list ? "," : dialect_.call.separator)) return false;
  if ((first || dialect_.begin.empty()) && !cursor.literal(dialect_.trigger)) return false;
  if (first && dialect_.list) cursor.literal("[");
  return !cursor.starved() && cursor.next_is('{');
}

HeadReader::Found HeadReader::read(CallCursor& cursor, bool first, CallHead& head) const {
  const CallCursor start = cursor;
  if (own_opening(cursor, first))
    if (const Found found = read_behind(cursor, true, head); found != Found::no) return found;
  for (const ToolDialect::Opening& other : dialect_.habits.openings) {
    if (cursor.starved()) return Found::more;
    cursor = start;
    if ((first && other.mark.empty()) || !cursor.literal(other.text)) continue;
    if (other.words && !cursor.skip_to('{', kWordsBytesMax)) continue;
    if (const Found found = read_behind(cursor, false, head); found != Found::no) return found;
  }
  if (cursor.starved()) return Found::more;
  cursor = start;
  if (object_opening(cursor, first))
    if (const Found found = object(cursor, false, head); found != Found::no) return found;
  return cursor.starved() ? Found::more : Found::no;
}

HeadReader::Found HeadReader::read_behind(CallCursor& cursor, bool marked, CallHead& head) const {
  if (dialect_.form == ToolDialect::Form::object) return object(cursor, marked, head);
  head = {};
  if (!name(cursor, head) || !name_end(cursor, head)) return cursor.starved() ? Found::more : Found::no;
  return known(head, marked) ? Found::yes : Found::no;
}

// Reads the name. In a numbered dialect, the text is "PREFIX NAME:NUMBER" (without the space), which is also
// the call's id. Models may omit the prefix, the number or the name, write '.' before the number, or write
// another id.
bool HeadReader::name(CallCursor& cursor, CallHead& head) const {
  if (dialect_.form == ToolDialect::Form::parameters) skip_quote(cursor);
  if (!cursor.name(head.name)) return false;
  if (!dialect_.numbered) return true;
  std::string number;
  if (cursor.next_is(':')) {
    if (!cursor.literal(":") || !cursor.name(number)) return false;
    head.id = head.name + ":" + number;
  }
  const std::string written = head.name;
  if (head.name.starts_with(dialect_.name_prefix)) head.name.erase(0, dialect_.name_prefix.size());
  const std::string_view stem = without_number(head.name);
  if (head.id.empty() && !tools_.contains(head.name) && tools_.contains(stem)) {
    head.id = written;
    head.name.resize(stem.size());
  }
  head.nameless = head.id.empty() && !tools_.contains(head.name);
  if (head.nameless) head.id = written;
  return true;
}

bool HeadReader::name_end(CallCursor& cursor, const CallHead& head) const {
  const CallCursor start = cursor;
  std::string_view end = trimmed(dialect_.name_end);
  switch (dialect_.form) {
    case ToolDialect::Form::object:
      break;
    case ToolDialect::Form::named:
    case ToolDialect::Form::harmony:
      if (cursor.literal(end) && cursor.next_is('{')) return true;
      if (cursor.starved() || !tools_.contains(head.name)) return false;
      cursor = start;
      return loose_name_end(cursor, dialect_);
    case ToolDialect::Form::parameters:
      skip_quote(cursor);
      if (end.starts_with('"')) end.remove_prefix(1);
      return cursor.literal(end);
    case ToolDialect::Form::python:
      return cursor.literal("(");
    case ToolDialect::Form::gemma:
      return cursor.literal("{");
  }
  return false;
}

// Reads `{"name": NAME, "arguments": ` up to the first byte of the arguments. If the arguments precede the
// name or are not an object, reads the whole object. "type" and an id may precede the arguments.
HeadReader::Found HeadReader::object(CallCursor& cursor, bool marked, CallHead& head) const {
  const auto failed = [&] { return cursor.starved() ? Found::more : Found::no; };
  head = {.object = true};
  if (!cursor.literal("{")) return failed();
  std::string arguments, key, raw;
  for (;;) {
    if (!cursor.string(key) || !cursor.literal(":")) return failed();
    if (key == dialect_.keys.name) {
      if (!cursor.string(head.name)) return failed();
    } else if (key == "arguments" || key == "parameters") {
      if (!head.name.empty() && cursor.next_is('{')) return known(head, marked) ? Found::yes : Found::no;
      if (!cursor.value(raw)) return failed();
      arguments = whole_arguments(raw);
      if (arguments.empty()) return Found::no;
    } else if (!(key == "type" || key == "id" || key == dialect_.keys.id) || !cursor.value(raw)) {
      return failed();
    }
    if (cursor.literal("}")) break;
    if (!cursor.literal(",")) return failed();
  }
  // If `mark` is "", a longer trigger has shown that this is a call, so the arguments may be missing.
  // Otherwise it could be other JSON.
  if (arguments.empty() && dialect_.mark.empty()) arguments = "{}";
  head.whole = std::move(arguments);
  return !head.name.empty() && !head.whole.empty() && known(head, marked) ? Found::yes : Found::no;
}

// Returns whether the call is accepted. A call that follows no clear marker, or lacks the number that its
// dialect needs, must name one of the request's tools.
bool HeadReader::known(const CallHead& head, bool marked) const {
  const bool must_be_call = marked && dialect_.mark.empty() && policy_ != CallPolicy::thoughts &&
                            !known_only_ && (!dialect_.numbered || head.object || !head.id.empty());
  return !head.name.empty() && (must_be_call || head.nameless || tools_.contains(head.name));
}

std::string tool_of(std::string_view arguments, const KnownTools& tools) {
  const auto object = grammar::parse_json(arguments, "arguments");
  if (!object) return "";
  std::string found;
  for (const auto& [name, parameters] : tools) {
    const auto has = [&](const auto& member) { return parameters.has(member.first); };
    if (tools.size() > 1 && !std::ranges::all_of(object->members, has)) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

}  // namespace octavo::openai
