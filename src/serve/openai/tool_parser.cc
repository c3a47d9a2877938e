#include "serve/openai/tool_parser.h"

#include <algorithm>
#include <utility>

namespace octavo::openai {

using grammar::ToolDialect;

namespace {

// The head of a call, up to its arguments, has at most this number of bytes, or it is no call.
constexpr std::size_t kHeadBytesMax = 32 << 10;
// A call with more bytes than this is sent before it is whole, so that a client does not wait for long.
constexpr std::size_t kHeldBytesMax = 1 << 10;

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

ToolParser::ToolParser(const ToolDialect& dialect, std::shared_ptr<const KnownTools> tools, bool parallel,
                       CallPolicy policy)
    : dialect_(dialect),
      tools_(std::move(tools)),
      mark_(dialect.mark.empty() ? dialect.trigger : dialect.mark),
      parallel_(parallel),
      policy_(policy) {}

ParsedText ToolParser::push(std::string_view text) {
  buffer_ += text;
  if (held_) raw_ += text;
  run();
  return std::exchange(out_, {});
}

void ToolParser::run() {
  const auto ended = [&] { return policy_ == CallPolicy::thoughts && calls_ > 0; };
  while (!ended() && !buffer_.empty() && step() == Step::done) {
  }
}

ParsedText ToolParser::finish() {
  // What is not a whole call by now is none; what lacks only its closing marks is one.
  while (!buffer_.empty() || held_) {
    const bool head = state_ == State::first_call || state_ == State::next_call;
    if (!held_ && !head) break;
    no_call();
    run();
  }
  if (state_ == State::text) emit_content(layout_ + buffer_);
  buffer_.clear();
  return std::exchange(out_, {});
}

ToolParser::Step ToolParser::step() {
  switch (state_) {
    case State::text:
      return read_text();
    case State::first_call:
      return read_call();
    case State::arguments:
      return read_arguments();
    case State::members:
      return skip_members();
    case State::call_end:
      return read_call_end();
    case State::next_call:
      return read_next();
    case State::other_json:
      return skip_json();
  }
  return Step::more;
}

// Whether only white space is before this place in its line.
bool ToolParser::begins_line(std::size_t at) const {
  const std::string_view before = std::string_view(buffer_).substr(0, at);
  const std::size_t last = before.find_last_not_of(" \t");
  return last == std::string_view::npos ? at_line_start_ : before[last] == '\n';
}

// The first of the marks that calls are found by.
ToolParser::Mark ToolParser::find_mark() const {
  Mark found;
  const auto look_for = [&](std::string_view mark) {
    std::size_t at = buffer_.find(mark);
    if (dialect_.at_beginning && policy_ == CallPolicy::thoughts)
      while (at != std::string::npos && !begins_line(at)) at = buffer_.find(mark, at + 1);
    if (at < found.at) found = {at, mark.size(), found.unsettled};
    found.unsettled = std::max(found.unsettled, unsettled(buffer_, mark));
  };
  look_for(mark_);
  for (const ToolDialect::Opening& other : dialect_.openings) look_for(other.mark);
  return found;
}

ToolParser::Step ToolParser::read_text() {
  if (behind_call_) {
    const auto text = std::ranges::find_if_not(buffer_, is_space);
    buffer_.erase(buffer_.begin(), text);
    if (buffer_.empty()) return Step::more;
    behind_call_ = false;
  }
  Mark mark;
  if (searching_) {
    mark = find_mark();
    if (dialect_.at_beginning && policy_ != CallPolicy::thoughts) {
      const std::size_t begin =
          static_cast<std::size_t>(std::ranges::find_if_not(buffer_, is_space) - buffer_.begin());
      searching_ = begin == buffer_.size() || begin == mark.at;
      if (begin != mark.at) mark = {};
    }
  }
  const bool found = mark.at != std::string::npos;
  const std::size_t end = found ? mark.at : buffer_.size() - mark.unsettled;
  const std::size_t spaces = searching_ ? spaces_at_end(std::string_view(buffer_).substr(0, end)) : 0;
  emit_content(std::string_view(buffer_).substr(0, end - spaces));
  drop(end - spaces);
  if (!found) return Step::more;
  layout_ = buffer_.substr(0, spaces);
  drop(spaces);
  mark_size_ = mark.size;
  first_ = true;
  go(State::first_call);
  return Step::done;
}

ToolParser::Step ToolParser::read_call() {
  CallCursor cursor(std::string_view(buffer_).substr(0, kHeadBytesMax));
  const Found found = call_head(cursor);
  if (found == Found::more && buffer_.size() < kHeadBytesMax) return Step::more;
  if (found != Found::yes) {
    no_call();
    return Step::done;
  }
  raw_ = buffer_;
  held_ = true;
  drop(cursor.at());
  begin_call();
  return Step::done;
}

// The call is text after all: the mark of the first call is content, and the text after it is read again.
void ToolParser::no_call() {
  if (std::exchange(held_, false)) buffer_ = std::exchange(raw_, {});
  arguments_.clear();
  reader_.reset();
  if (first_) {
    emit_content(std::exchange(layout_, {}));
    CallCursor object(std::string_view(buffer_).substr(mark_size_));
    const bool json = mark_ == "{" && object.next_is('"');
    scan_ = {};
    if (json) scan_.take(mark_);
    emit_content(std::string_view(buffer_).substr(0, mark_size_));
    drop(mark_size_);
    searching_ = !dialect_.at_beginning || policy_ == CallPolicy::thoughts;
    return go(json ? State::other_json : State::text);
  }
  behind_call_ = true;
  go(State::text);
}

// A call that stands within another object is none.
ToolParser::Step ToolParser::skip_json() {
  const std::size_t size = scan_.take(buffer_);
  emit_content(std::string_view(buffer_).substr(0, size));
  drop(size);
  if (!scan_.done()) return Step::more;
  go(State::text);
  return Step::done;
}

// Reads up to a call's name or object: as the dialect has it, or as models write it too.
bool ToolParser::opening(CallCursor& cursor) {
  const CallCursor start = cursor;
  if (first_)
    marked_ = cursor.literal(dialect_.begin) && (!dialect_.list || cursor.literal("["));
  else
    marked_ = cursor.literal(dialect_.list ? "," : dialect_.separator);
  marked_ = marked_ && cursor.literal(dialect_.call_begin);
  if (marked_) return true;
  for (const ToolDialect::Opening& other : dialect_.openings) {
    if (cursor.starved()) return false;
    cursor = start;
    if (cursor.literal(other.text)) return true;
  }
  return false;
}

// Up to the first byte of arguments, or up to the end of arguments that are complete.
ToolParser::Found ToolParser::call_head(CallCursor& cursor) {
  name_.clear();
  id_.clear();
  whole_.clear();
  bool read = opening(cursor);
  if (read && dialect_.form == ToolDialect::Form::object) return object_head(cursor);
  read = read && (dialect_.numbered ? numbered_name(cursor) : cursor.name(name_));
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
  return known(name_) ? Found::yes : Found::no;
}

// PREFIX NAME:NUMBER, which is the call's id; models leave out the prefix, and the number.
bool ToolParser::numbered_name(CallCursor& cursor) {
  if (!cursor.name(name_)) return false;
  std::string number;
  if (cursor.next_is(':')) {
    if (!cursor.literal(":") || !cursor.name(number)) return false;
    id_ = name_ + ":" + number;
  }
  if (name_.starts_with(dialect_.name_prefix)) name_.erase(0, dialect_.name_prefix.size());
  return true;
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

// A call without a mark must name one of the request's tools.
bool ToolParser::known(const std::string& name) const {
  const bool told = marked_ && dialect_.mark.empty() && policy_ != CallPolicy::thoughts;
  return !name.empty() && (told || tools_->contains(name));
}

void ToolParser::begin_call() {
  static const ToolParameters kUnknown;
  if (!whole_.empty()) {
    arguments_ = std::move(whole_);
    send_call();
    return go(State::call_end);
  }
  const auto tool = tools_->find(name_);
  reader_ = arguments_reader(dialect_, tool == tools_->end() ? kUnknown : tool->second);
  go(State::arguments);
}

void ToolParser::send_call() {
  held_ = false;
  raw_.clear();
  layout_.clear();
  searching_ = !dialect_.at_beginning;
  ++calls_;
  if (parallel_ || calls_ == 1)
    out_.calls.push_back({.index = calls_ - 1, .name = name_, .arguments = arguments_, .id = id_});
  arguments_.clear();
}

ToolParser::Step ToolParser::read_arguments() {
  std::string news;
  const ArgumentsReader::Step step = reader_->read(buffer_, news);
  emit_arguments(news);
  const bool is_long = held_ && raw_.size() - buffer_.size() > kHeldBytesMax;
  if (is_long && policy_ == CallPolicy::stream) send_call();
  if (step == ArgumentsReader::Step::more) return Step::more;
  if (step == ArgumentsReader::Step::again) return Step::done;
  if (held_ && (step == ArgumentsReader::Step::broken || !is_json(arguments_))) {
    no_call();
    return Step::done;
  }
  if (held_) send_call();
  reader_.reset();
  go(dialect_.form == ToolDialect::Form::object ? State::members : State::call_end);
  return Step::done;
}

// Skips the members after the arguments in {"name", "arguments"}.
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
  first_ = false;
  go(State::next_call);
  return Step::done;
}

ToolParser::Step ToolParser::read_next() {
  CallCursor cursor(buffer_);
  if ((!dialect_.list || cursor.literal("]")) && (dialect_.list || !dialect_.end.empty())) {
    const std::size_t bracket = cursor.at();
    bool ended = cursor.literal(dialect_.end);
    for (const ToolDialect::Opening& other : dialect_.openings)
      if (!ended && !other.end.empty()) ended = cursor.literal(other.end);
    if (cursor.starved()) return Step::more;
    if (ended || dialect_.list) {
      drop(ended ? cursor.at() : bracket);
      no_call();
      return Step::done;
    }
  }
  if (cursor.starved()) return Step::more;
  return read_call();
}

void ToolParser::emit_content(std::string_view content) {
  out_.content += content;
  const std::size_t last = content.find_last_not_of(" \t");
  if (last != std::string_view::npos) at_line_start_ = content[last] == '\n';
}

void ToolParser::emit_arguments(std::string_view arguments) {
  if (held_) arguments_ += arguments;
  if (held_ || arguments.empty() || (!parallel_ && calls_ > 1)) return;
  if (out_.calls.empty() || out_.calls.back().index != calls_ - 1)
    out_.calls.push_back({.index = calls_ - 1});
  out_.calls.back().arguments += arguments;
}

}  // namespace octavo::openai
