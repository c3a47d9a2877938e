#include "serve/openai/tool_parser.h"

#include <algorithm>
#include <utility>

namespace octavo::openai {

using grammar::ToolDialect;

namespace {

// Maximum bytes of the head of a call. If a head is longer, the text is not a call.
constexpr std::size_t kHeadBytesMax = 32 << 10;
// Calls are held back up to this number of bytes. Longer calls are sent in pieces, so that the client does
// not wait for the whole call.
constexpr std::size_t kHeldBytesMax = 1 << 10;
constexpr std::string_view kThoughtsEnd = "</think>";

// Skips text of the form NAME(...).
bool skip_python_call(CallCursor& cursor) {
  std::string name;
  if (!cursor.name(name) || !cursor.next_is('(')) return false;
  const std::string_view text = cursor.rest();
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (std::string_view("([{").contains(c)) {
      ++depth;
    } else if (std::string_view(")]}").contains(c) && --depth == 0) {
      cursor.skip(i + 1);
      return true;
    }
  }
  return cursor.starve();
}

}  // namespace

void ParsedText::append(ParsedText&& next) {
  for (CallPiece& piece : next.calls) {
    piece.at += content.size();
    if (!calls.empty() && calls.back().index == piece.index)
      calls.back().arguments += piece.arguments;
    else
      calls.push_back(std::move(piece));
  }
  content += next.content;
}

ToolParser::ToolParser(const ToolDialect& dialect, std::shared_ptr<const KnownTools> tools, bool parallel,
                       CallPolicy policy, bool known_only)
    : tools_(tools ? std::move(tools) : std::make_shared<const KnownTools>()),
      mark_(dialect.mark.empty() ? dialect.trigger : dialect.mark),
      parallel_(parallel),
      policy_(policy),
      forms_{{dialect, *tools_, policy, known_only}} {
  for (const std::string_view other : dialect.habits.others)
    forms_.emplace_back(*grammar::tool_dialect(other), *tools_, policy, true);
}

ParsedText ToolParser::push(std::string_view text) {
  buffer_ += text;
  if (call_.held) call_.raw += text;
  run();
  return std::exchange(out_, {});
}

void ToolParser::run() {
  const auto ended = [&] { return policy_ == CallPolicy::thoughts && calls_ > 0; };
  while (!ended() && !buffer_.empty() && step() == Step::done) {
  }
}

// If only closing brackets and markers of the call are missing, completes the arguments.
void ToolParser::close_arguments() {
  if (state_ != State::arguments || !now().habits.open_end) return;
  if (!trimmed(now().call.end).starts_with(trimmed(buffer_))) return;
  const std::string end = call_.reader->end();
  if (end.empty() || (call_.held && (call_.head.nameless || !is_json(call_.arguments + end)))) return;
  emit_arguments(end);
  if (call_.held) send_call();
  call_.reader.reset();
  buffer_.clear();
  go(State::call_end);
}

ParsedText ToolParser::finish(bool whole) {
  last_ = true;
  run();
  if (whole) close_arguments();
  // A call that is still incomplete now becomes content.
  while (!buffer_.empty() || call_.held) {
    const bool head = state_ == State::first_call || state_ == State::next_call;
    if (!call_.held && !head) break;
    no_call();
    run();
  }
  if (state_ == State::text && !buffer_.empty()) {
    emit_layout();
    emit_content(buffer_);
  }
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
    case State::broken_item:
      return skip_item();
  }
  return Step::more;
}

// Returns whether the line has only white space before this position.
bool ToolParser::begins_line(std::size_t at) const {
  const std::string_view before = std::string_view(buffer_).substr(0, at);
  const std::size_t last = before.find_last_not_of(" \t");
  return last == std::string_view::npos ? at_line_start_ : before[last] == '\n';
}

// Returns the position of the dialect's own marker, where a call may begin, or npos.
std::size_t ToolParser::find_own_mark() const {
  std::size_t at = buffer_.find(mark_);
  if (!own().at_beginning) return at;
  if (policy_ != CallPolicy::thoughts)
    return at_start_ && buffer_.find_first_not_of(" \t\r\n") == at ? at : std::string::npos;
  while (at != std::string::npos && !begins_line(at)) at = buffer_.find(mark_, at + 1);
  return at;
}

// Updates `found` if another text that can begin a call of the dialect appears earlier in buffer_.
void ToolParser::add_marks(const ToolDialect& dialect, Mark& found) const {
  const auto add = [&](std::string_view mark) {
    if (mark.empty()) return;
    const std::size_t at = buffer_.find(mark);
    if (at < found.at) found = {at, mark.size(), found.unsettled};
    found.unsettled = std::max(found.unsettled, unsettled(buffer_, mark));
  };
  if (&dialect != &own()) add(dialect.trigger);
  for (const ToolDialect::Opening& other : dialect.habits.openings) add(other.mark);
}

ToolParser::Mark ToolParser::find_mark() const {
  Mark found{.at = find_own_mark(), .size = mark_.size(), .unsettled = unsettled(buffer_, mark_)};
  for (const HeadReader& form : forms_) add_marks(form.dialect(), found);
  if (own().at_beginning && policy_ != CallPolicy::thoughts) {
    // Without a reasoning parser, the reasoning is content. Then the beginning of the output is after the
    // reasoning.
    const std::size_t at = buffer_.find(kThoughtsEnd);
    if (at < found.at) found = {.at = at, .size = kThoughtsEnd.size(), .restarts = true};
    found.unsettled = std::max(found.unsettled, unsettled(buffer_, kThoughtsEnd));
  }
  return found;
}

ToolParser::Step ToolParser::read_text() {
  if (layout_.after_call) {
    const auto text = std::ranges::find_if_not(buffer_, is_space);
    layout_.space.append(buffer_.begin(), text);
    buffer_.erase(buffer_.begin(), text);
    if (buffer_.empty()) return Step::more;
    layout_.after_call = false;
  }
  const Mark mark = find_mark();
  const bool found = mark.at != std::string::npos;
  if (mark.restarts) {
    emit_layout();
    emit_content(std::string_view(buffer_).substr(0, mark.at + mark.size));
    drop(mark.at + mark.size);
    at_start_ = true;
    return Step::done;
  }
  const std::size_t end = found ? mark.at : buffer_.size() - mark.unsettled;
  const std::size_t spaces = spaces_at_end(std::string_view(buffer_).substr(0, end));
  if (end > spaces) emit_layout();
  emit_content(std::string_view(buffer_).substr(0, end - spaces));
  drop(end - spaces);
  if (!found) return Step::more;
  layout_.space += buffer_.substr(0, spaces);
  drop(spaces);
  mark_size_ = mark.size;
  form_ = 0;
  first_ = true;
  broken_list_ = false;
  go(State::first_call);
  return Step::done;
}

// The first call after a marker decides the dialect of the calls that follow it.
HeadReader::Found ToolParser::read_head(CallCursor& cursor) {
  const CallCursor start = cursor;
  HeadReader::Found found = forms_[form_].read(cursor, first_, call_.head);
  for (std::size_t i = 1; first_ && found == HeadReader::Found::no && i < forms_.size(); ++i) {
    cursor = start;
    found = forms_[i].read(cursor, true, call_.head);
    if (found == HeadReader::Found::yes) form_ = i;
  }
  return found;
}

ToolParser::Step ToolParser::read_call() {
  using Found = HeadReader::Found;
  CallCursor cursor(std::string_view(buffer_).substr(0, kHeadBytesMax));
  const Found found = read_head(cursor);
  if (found == Found::more && buffer_.size() < kHeadBytesMax) return Step::more;
  if (found != Found::yes) {
    no_call();
    return Step::done;
  }
  call_.raw = buffer_;
  call_.held = true;
  drop(cursor.at());
  begin_call();
  return Step::done;
}

void ToolParser::no_call() {
  if (std::exchange(call_.held, false)) buffer_ = std::exchange(call_.raw, {});
  call_.arguments.clear();
  call_.reader.reset();
  if (now().list && policy_ != CallPolicy::thoughts) return go(State::broken_item);
  leave();
}

// Ends the list of calls. If no call followed the marker, the marker becomes content.
void ToolParser::leave() {
  if (first_) {
    emit_layout();
    CallCursor object(std::string_view(buffer_).substr(mark_size_));
    const bool json = mark_ == "{" && object.next_is('"');
    scan_ = {};
    if (json) scan_.take(mark_);
    emit_content(std::string_view(buffer_).substr(0, mark_size_));
    drop(mark_size_);
    at_start_ = false;
    return go(json ? State::other_json : State::text);
  }
  layout_.after_call = !broken_list_;
  go(State::text);
}

// A list item that is not a call becomes content. The next item may be a call.
ToolParser::Step ToolParser::skip_item() {
  const std::string_view text(buffer_);
  CallCursor item(text);
  if (first_) item.skip(mark_size_ - text.substr(0, mark_size_).ends_with('['));
  std::string value;
  bool read = item.literal(first_ ? "[" : ",");
  if (now().form == ToolDialect::Form::python)
    read = read && skip_python_call(item);
  else
    read = read && item.next_is('{') && item.value(value);
  const std::size_t size = item.at();
  read = read && (item.next_is(',') || item.next_is(']'));
  if (item.starved() && !last_ && text.size() < kHeldBytesMax) return Step::more;
  if (!read) {
    leave();
    return Step::done;
  }
  emit_layout();
  emit_content(text.substr(0, size));
  drop(size);
  broken_list_ = broken_list_ || first_;
  first_ = false;
  go(State::next_call);
  return Step::done;
}

// Skips a JSON object that is content, so that no call is found within it.
ToolParser::Step ToolParser::skip_json() {
  const std::size_t size = scan_.take(buffer_);
  emit_content(std::string_view(buffer_).substr(0, size));
  drop(size);
  if (!scan_.done()) return Step::more;
  go(State::text);
  return Step::done;
}

void ToolParser::begin_call() {
  static const ToolParameters kUnknown;
  if (!call_.head.whole.empty()) {
    call_.arguments = std::move(call_.head.whole);
    send_call();
    return go(State::call_end);
  }
  const auto tool = tools_->find(call_.head.name);
  call_.reader = call_.head.object ? json_arguments()
                                   : arguments_reader(now(), tool == tools_->end() ? kUnknown : tool->second);
  go(State::arguments);
}

void ToolParser::send_call() {
  call_.held = broken_list_ = false;
  layout_.space.append(call_.raw.begin(), std::ranges::find_if_not(call_.raw, is_space));
  call_.raw.clear();
  at_start_ = false;
  ++calls_;
  if (parallel_ || calls_ == 1)
    out_.calls.push_back({.index = calls_ - 1,
                          .name = call_.head.name,
                          .arguments = call_.arguments,
                          .id = call_.head.id,
                          .at = out_.content.size()});
  call_.arguments.clear();
}

ToolParser::Step ToolParser::read_arguments() {
  std::string news;
  const ArgumentsReader::Step step = call_.reader->read(buffer_, news);
  emit_arguments(news);
  if (call_.held && step == ArgumentsReader::Step::done)
    call_.arguments = without_repeats(std::move(call_.arguments));
  const bool is_long = call_.held && call_.raw.size() - buffer_.size() > kHeldBytesMax;
  if (is_long && policy_ == CallPolicy::stream && !call_.head.nameless) send_call();
  if (step == ArgumentsReader::Step::more) return Step::more;
  if (step == ArgumentsReader::Step::again) return Step::done;
  if (call_.held && (step == ArgumentsReader::Step::broken || !is_json(call_.arguments))) {
    no_call();
    return Step::done;
  }
  if (call_.held && call_.head.nameless) {
    call_.head.name = tool_of(call_.arguments, *tools_);
    if (call_.head.name.empty()) {
      no_call();
      return Step::done;
    }
  }
  if (call_.held) send_call();
  call_.reader.reset();
  go(call_.head.object ? State::members : State::call_end);
  return Step::done;
}

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

// Reads the closing markers of a call. Models may omit some of them.
ToolParser::Step ToolParser::read_call_end() {
  constexpr std::string_view kFence = "```";
  const bool fenced = now().form == ToolDialect::Form::named;
  std::string_view marks = trimmed(now().call.end);
  std::size_t size = 0;
  while (!marks.empty()) {
    const std::string_view mark = marks.substr(0, marks.find('\n'));
    CallCursor cursor(std::string_view(buffer_).substr(size));
    if (fenced) cursor.literal(kFence);
    if (call_.head.object && cursor.next_is('}')) cursor.skip(1);  // a '}' too many
    if (!cursor.starved() && cursor.literal(mark.substr(mark.starts_with(kFence) ? kFence.size() : 0)))
      size += cursor.at();
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
  CallCursor comma(buffer_);
  if (now().list && comma.literal(",") && comma.next_is(']')) cursor = comma;
  const bool closed = now().list && !comma.starved() && cursor.literal("]");
  const std::size_t bracket = cursor.at();
  bool ended = !now().end.empty() && cursor.literal(now().end);
  for (const ToolDialect::Opening& other : now().habits.openings)
    ended = ended || (!other.end.empty() && cursor.literal(other.end));
  if ((cursor.starved() || comma.starved()) && !last_) return Step::more;
  if (ended || closed) {
    const std::size_t size = ended ? cursor.at() : bracket;
    if (broken_list_) emit_content(std::string_view(buffer_).substr(0, size));
    drop(size);
    go(State::text);
    layout_.after_call = !broken_list_;
    return Step::done;
  }
  return read_call();
}

// White space between two texts stays, also if a call was between them: otherwise their words would join.
void ToolParser::emit_layout() {
  const std::string space = std::exchange(layout_.space, {});
  if (layout_.after_text || calls_ == 0) emit_content(space);
}

void ToolParser::emit_content(std::string_view content) {
  out_.content += content;
  layout_.after_text = layout_.after_text || !content.empty();
  const std::size_t last = content.find_last_not_of(" \t");
  if (last == std::string_view::npos) return;
  at_start_ = at_start_ && content.find_first_not_of(" \t\r\n") == std::string_view::npos;
  at_line_start_ = content[last] == '\n';
}

void ToolParser::emit_arguments(std::string_view arguments) {
  if (call_.held) call_.arguments += arguments;
  if (call_.held || arguments.empty() || (!parallel_ && calls_ > 1)) return;
  if (out_.calls.empty() || out_.calls.back().index != calls_ - 1)
    out_.calls.push_back({.index = calls_ - 1});
  out_.calls.back().arguments += arguments;
}

}  // namespace octavo::openai
