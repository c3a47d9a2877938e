#include "serve/openai/tool_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "grammar/json_value.h"

namespace octavo::openai {

using grammar::ToolDialect;

namespace {

// A call's name, and what must be known before it is sent, come within so many bytes, or it is no call.
constexpr std::size_t kHeadBytesMax = 32 << 10;
constexpr std::string_view kCdata = "<![CDATA[", kCdataEnd = "]]>";

}  // namespace

void ParsedText::append(ParsedText&& next) {
  content += next.content;
  for (CallPiece& piece : next.calls) {
    if (!calls.empty() && calls.back().index == piece.index)
      calls.back().arguments += piece.arguments;
    else
      calls.push_back(std::move(piece));
  }
}

ToolParser::ToolParser(const ToolDialect& dialect, std::shared_ptr<const KnownTools> tools, bool parallel)
    : dialect_(dialect),
      tools_(std::move(tools)),
      mark_(dialect.mark.empty() ? dialect.trigger : dialect.mark),
      parallel_(parallel) {}

ParsedText ToolParser::push(std::string_view text) {
  buffer_ += text;
  while (!buffer_.empty() && step() == Step::done) {
  }
  return std::exchange(out_, {});
}

ParsedText ToolParser::finish() {
  // What is not a call by now is none; what lacks only its closing marks is one.
  while (!buffer_.empty() && (state_ == State::first_call || state_ == State::next_call)) {
    state_ == State::first_call ? no_call() : no_next_call();
    while (!buffer_.empty() && step() == Step::done) {
    }
  }
  if (state_ == State::text) emit_content(layout_ + buffer_);
  if (state_ == State::json_value) emit_arguments(buffer_);
  buffer_.clear();
  return std::exchange(out_, {});
}

ToolParser::Step ToolParser::step() {
  switch (state_) {
    case State::text:
      return read_text();
    case State::first_call:
      return read_call(true);
    case State::arguments:
      return stream_arguments();
    case State::members:
      return skip_members();
    case State::parameter:
      return read_parameter();
    case State::text_value:
      return stream_text_value();
    case State::json_value:
      return read_json_value();
    case State::literals:
      return read_literal();
    case State::call_end:
      return read_call_end();
    case State::next_call:
      return read_next();
  }
  return Step::more;
}

ToolParser::Step ToolParser::read_text() {
  if (behind_call_) {
    const auto text = std::ranges::find_if_not(buffer_, is_space);
    buffer_.erase(buffer_.begin(), text);
    if (buffer_.empty()) return Step::more;
    behind_call_ = false;
  }
  std::size_t at = std::string::npos;
  std::size_t keep = 0;
  if (searching_) {
    at = buffer_.find(mark_);
    if (at == std::string::npos) keep = unsettled(buffer_, mark_);
    if (dialect_.at_beginning) {
      const std::size_t begin =
          static_cast<std::size_t>(std::ranges::find_if_not(buffer_, is_space) - buffer_.begin());
      searching_ = begin == buffer_.size() || begin == at;
      if (begin != at) at = std::string::npos;
    }
  }
  const std::size_t end = at == std::string::npos ? buffer_.size() - keep : at;
  const std::size_t spaces = searching_ ? spaces_at_end(std::string_view(buffer_).substr(0, end)) : 0;
  emit_content(std::string_view(buffer_).substr(0, end - spaces));
  drop(end - spaces);
  if (at == std::string::npos) return Step::more;
  layout_ = buffer_.substr(0, spaces);
  drop(spaces);
  go(State::first_call);
  return Step::done;
}

ToolParser::Step ToolParser::read_call(bool first) {
  CallCursor cursor(std::string_view(buffer_).substr(0, kHeadBytesMax));
  Found found = call_head(cursor, first);
  if (found == Found::more && buffer_.size() < kHeadBytesMax) return Step::more;
  if (found == Found::yes) {
    drop(cursor.at());
    begin_call();
  } else {
    first ? no_call() : no_next_call();
  }
  return Step::done;
}

// The mark is text after all; what follows it is looked at again.
void ToolParser::no_call() {
  emit_content(std::exchange(layout_, {}));
  emit_content(std::string_view(buffer_).substr(0, mark_.size()));
  drop(mark_.size());
  searching_ = !dialect_.at_beginning;
  go(State::text);
}

void ToolParser::no_next_call() {
  behind_call_ = true;
  go(State::text);
}

// Up to the first byte of arguments, or up to the end of arguments that are complete.
ToolParser::Found ToolParser::call_head(CallCursor& cursor, bool first) {
  const bool opened = first ? cursor.literal(dialect_.begin) && (!dialect_.list || cursor.literal("["))
                            : cursor.literal(dialect_.list ? "," : dialect_.separator);
  bool read = opened && cursor.literal(dialect_.call_begin);
  name_.clear();
  id_.clear();
  whole_.clear();
  if (read && dialect_.form == ToolDialect::Form::object) return object_head(cursor);
  read = read && cursor.name(name_);
  if (dialect_.numbered) read = read && cursor.literal(":") && cursor.name(id_);
  switch (dialect_.form) {
    case ToolDialect::Form::object:
      break;
    case ToolDialect::Form::named:
    case ToolDialect::Form::harmony:
      read = read && cursor.literal(dialect_.name_end) && cursor.next_is('{');
      break;
    case ToolDialect::Form::parameters:
      read = read && cursor.literal(dialect_.name_end);
      break;
    case ToolDialect::Form::python:
      read = read && cursor.literal("(");
      break;
    case ToolDialect::Form::gemma:
      read = read && cursor.literal("{");
      break;
  }
  if (!read) return cursor.starved() ? Found::more : Found::no;
  if (dialect_.numbered) id_ = fmt::format("functions.{}:{}", name_, id_);
  return known(name_) ? Found::yes : Found::no;
}

// {"name": NAME, "arguments": up to the object, or all of {...} where the arguments come first or are no
// object as such. Before the arguments there may be a "type" and an id.
ToolParser::Found ToolParser::object_head(CallCursor& cursor) {
  const auto failed = [&] { return cursor.starved() ? Found::more : Found::no; };
  if (!cursor.literal("{")) return failed();
  std::string arguments, key, raw;
  for (;;) {
    if (!cursor.string(key) || !cursor.literal(":")) return failed();
    if (key == dialect_.name_key) {
      if (!cursor.string(name_)) return failed();
    } else if (key == "arguments" || key == "parameters") {
      if (!name_.empty() && cursor.next_is('{')) return known(name_) ? Found::yes : Found::no;
      if (!cursor.value(raw)) return failed();
      arguments = whole_arguments(raw);
      if (arguments.empty()) return Found::no;
    } else if (!(key == "type" || key == "id" || key == dialect_.id_key) || !cursor.value(raw)) {
      return failed();
    }
    if (cursor.literal("}")) break;
    if (!cursor.literal(",")) return failed();
  }
  // A mark tells a call without arguments from other JSON.
  if (arguments.empty() && dialect_.mark.empty()) arguments = "{}";
  whole_ = std::move(arguments);
  return !name_.empty() && !whole_.empty() && known(name_) ? Found::yes : Found::no;
}

// Where nothing but its form tells a call from text, it is a call of one of the request's tools.
bool ToolParser::known(const std::string& name) const {
  return !name.empty() && (dialect_.mark.empty() || tools_->contains(name));
}

void ToolParser::begin_call() {
  layout_.clear();
  searching_ = !dialect_.at_beginning;
  ++calls_;
  if (parallel_ || calls_ == 1) out_.calls.push_back({.index = calls_ - 1, .name = name_, .id = id_});
  scan_ = {};
  first_parameter_ = true;
  switch (dialect_.form) {
    case ToolDialect::Form::object:
    case ToolDialect::Form::named:
    case ToolDialect::Form::harmony:
      emit_arguments(whole_);
      return go(whole_.empty() ? State::arguments : State::call_end);
    case ToolDialect::Form::parameters:
      emit_arguments("{");
      return go(State::parameter);
    case ToolDialect::Form::python:
    case ToolDialect::Form::gemma:
      emit_arguments("{");
      return go(State::literals);
  }
}

ToolParser::Step ToolParser::stream_arguments() {
  const std::size_t size = scan_.take(buffer_);
  emit_arguments(std::string_view(buffer_).substr(0, size));
  drop(size);
  if (!scan_.done()) return Step::more;
  go(dialect_.form == ToolDialect::Form::object ? State::members : State::call_end);
  return Step::done;
}

// What follows the arguments in {"name", "arguments"} says nothing.
ToolParser::Step ToolParser::skip_members() {
  CallCursor cursor(buffer_);
  std::string ignored;
  while (cursor.literal(",") && cursor.string(ignored) && cursor.literal(":") && cursor.value(ignored)) {
  }
  if (!cursor.starved()) cursor.literal("}");
  if (cursor.starved()) return Step::more;
  drop(cursor.at());
  go(State::call_end);
  return Step::done;
}

ToolParser::Step ToolParser::read_parameter() {
  CallCursor end(buffer_), block(buffer_);
  const std::string_view name_end = trimmed(dialect_.parameter_name_end);
  const std::string_view closing = trimmed(dialect_.call_end);
  // The first word closes the call; the rest may be missing.
  if (end.literal(closing.substr(0, closing.find('\n')))) {
    end_arguments();
    return Step::done;
  }
  std::string name;
  if (block.literal(dialect_.parameter_begin)) {
    const std::string_view rest = std::string_view(buffer_).substr(block.at());
    const std::size_t name_size = rest.find(name_end.substr(0, name_end.find('\n')));
    if (name_size == std::string_view::npos) return Step::more;
    name = trimmed(rest.substr(0, name_size));
    CallCursor behind(rest.substr(name_size));
    bool said_text = false;
    const auto says = [&] {
      said_text = behind.literal("true\">");
      return said_text || behind.literal("false\">");
    };
    if (behind.literal(name_end) && (!dialect_.says_text || says())) {
      drop(block.at() + name_size + behind.at());
      emit_arguments(std::exchange(first_parameter_, false) ? "\"" : ", \"");
      emit_arguments(grammar::json_escape(name) + "\": ");
      const auto tool = tools_->find(name_);
      const bool known_text =
          tool != tools_->end() && std::ranges::find(tool->second, name) != tool->second.end();
      const bool text = dialect_.says_text ? said_text : known_text;
      if (text) emit_arguments("\"");
      at_value_ = true;
      go(text ? State::text_value : State::json_value);
      return Step::done;
    }
    if (behind.starved()) return Step::more;
  }
  if (end.starved() || block.starved()) return Step::more;
  end_arguments();  // something else: the call ends here
  return Step::done;
}

void ToolParser::end_arguments() {
  emit_arguments("}");
  go(State::call_end);
}

// The line break behind the name and the one before the closing mark are layout where the dialect has them.
ToolParser::Step ToolParser::stream_text_value() {
  if (dialect_.cdata && at_value_) {
    const std::size_t size = std::min(buffer_.size(), kCdata.size());
    in_cdata_ = kCdata.starts_with(std::string_view(buffer_).substr(0, size));
    if (in_cdata_ && size < kCdata.size()) return Step::more;
    if (in_cdata_) drop(size);
  }
  const bool wrapped = dialect_.parameter_end.starts_with('\n');
  const std::string_view closing = in_cdata_ ? kCdataEnd : trimmed(dialect_.parameter_end);
  if (wrapped && at_value_ && buffer_.starts_with('\n')) drop(1);
  at_value_ = false;
  const std::size_t at = buffer_.find(closing);
  std::size_t end = at == std::string::npos ? buffer_.size() - unsettled(buffer_, closing) : at;
  if (wrapped && end > 0 && buffer_[end - 1] == '\n') --end;
  emit_arguments(grammar::json_escape(std::string_view(buffer_).substr(0, end)));
  if (at == std::string::npos) {
    drop(end);
    return Step::more;
  }
  drop(at + closing.size());
  if (std::exchange(in_cdata_, false)) return Step::done;  // the closing mark follows
  emit_arguments("\"");
  go(State::parameter);
  return Step::done;
}

ToolParser::Step ToolParser::read_json_value() {
  const std::string_view closing = trimmed(dialect_.parameter_end);
  const std::size_t at = buffer_.find(closing);
  if (at == std::string::npos) return Step::more;
  std::string_view text = std::string_view(buffer_).substr(0, at);
  if (const std::string value(trimmed(text)); is_json(value)) {
    emit_arguments(value);
  } else {
    if (dialect_.parameter_end.starts_with('\n')) {
      if (text.starts_with('\n')) text.remove_prefix(1);
      if (text.ends_with('\n')) text.remove_suffix(1);
    }
    emit_arguments('"' + grammar::json_escape(text) + '"');
  }
  drop(at + closing.size());
  go(State::parameter);
  return Step::done;
}

ToolParser::Step ToolParser::read_literal() {
  const bool python = dialect_.form == ToolDialect::Form::python;
  CallCursor end(buffer_), next(buffer_);
  const auto read_value = [&](std::string& value) {
    return python ? next.python(value) : next.gemma(value, dialect_.quote);
  };
  if (end.literal(python ? ")" : "}")) {
    drop(end.at());
    end_arguments();
    return Step::done;
  }
  std::string name, value;
  if ((first_parameter_ || next.literal(",")) && next.name(name) && next.literal(python ? "=" : ":") &&
      read_value(value)) {
    drop(next.at());
    emit_arguments(std::exchange(first_parameter_, false) ? "\"" : ", \"");
    emit_arguments(name + "\": " + value);
    return Step::done;
  }
  if (end.starved() || next.starved()) return Step::more;
  end_arguments();  // something else: the call ends here
  return Step::done;
}

// The closing marks, as far as they are there.
ToolParser::Step ToolParser::read_call_end() {
  std::string_view marks = trimmed(dialect_.call_end);
  std::size_t size = 0;
  while (!marks.empty()) {
    const std::string_view mark = marks.substr(0, marks.find('\n'));
    CallCursor cursor(std::string_view(buffer_).substr(size));
    if (cursor.literal(mark)) size += cursor.at();
    if (cursor.starved()) return Step::more;
    marks = trimmed(marks.substr(mark.size()));
  }
  drop(size);
  go(State::next_call);
  return Step::done;
}

ToolParser::Step ToolParser::read_next() {
  CallCursor cursor(buffer_);
  if ((!dialect_.list || cursor.literal("]")) && (dialect_.list || !dialect_.end.empty())) {
    const std::size_t bracket = cursor.at();
    const bool ended = cursor.literal(dialect_.end);
    if (cursor.starved()) return Step::more;
    if (ended || dialect_.list) {
      drop(ended ? cursor.at() : bracket);
      no_next_call();
      return Step::done;
    }
  }
  if (cursor.starved()) return Step::more;
  return read_call(false);
}

void ToolParser::emit_content(std::string_view content) { out_.content += content; }

void ToolParser::emit_arguments(std::string_view arguments) {
  if (arguments.empty() || (!parallel_ && calls_ > 1)) return;
  if (out_.calls.empty() || out_.calls.back().index != calls_ - 1)
    out_.calls.push_back({.index = calls_ - 1});
  out_.calls.back().arguments += arguments;
}

}  // namespace octavo::openai
