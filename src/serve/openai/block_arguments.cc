// Reads arguments that a model writes as one block for each parameter (BLOCK in grammar/tool_dialect.h).
#include <algorithm>
#include <charconv>
#include <utility>

#include "grammar/json_value.h"
#include "grammar/unicode.h"
#include "serve/openai/call_arguments.h"
#include "serve/openai/call_cursor.h"

namespace octavo::openai {

using grammar::ToolDialect;

namespace {

constexpr std::string_view kCdata = "<![CDATA[", kCdataEnd = "]]>";
constexpr std::size_t kEntityBytesMax = 12;

// Names of a single parameter in which some models write all parameters as one object.
constexpr std::string_view kWrappers[] = {"arguments", "input", "parameters", "properties"};

// Returns the tag without its opening quote, because models may omit this quote or write a single quote.
std::string_view without_quote(std::string_view tag) {
  if (tag.ends_with('"')) tag.remove_suffix(1);
  return tag;
}

// text: the text between '=' and '>'. Returns the attribute's value without quotes.
std::string_view attribute_value(std::string_view text) {
  constexpr std::string_view kQuotes = "\"'";
  text = trimmed(text);
  const bool quoted = !text.empty() && kQuotes.contains(text.front());
  if (quoted) text.remove_prefix(1);
  return trimmed(text.substr(0, text.find_first_of(quoted ? kQuotes : " \"'")));
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }
std::string_view first_tag(std::string_view text) { return text.substr(0, text.find('>') + 1); }

// Returns the character of an entity such as "lt", "#60" or "#x3c", or "" for an unknown entity.
std::string entity(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNamed[] = {
      {"lt", "<"}, {"gt", ">"}, {"amp", "&"}, {"quot", "\""}, {"apos", "'"}};
  for (const auto& [known, character] : kNamed)
    if (known == name) return std::string(character);
  if (!name.starts_with('#')) return "";
  name.remove_prefix(1);
  const bool hex = name.starts_with('x') || name.starts_with('X');
  if (hex) name.remove_prefix(1);
  std::uint32_t code = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), code, hex ? 16 : 10);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (error != std::errc() || end != name.data() + name.size() || code > 0x10FFFF || surrogate) return "";
  std::string character;
  grammar::append_utf8(character, code);
  return character;
}

// Returns the number of bytes at the end of the text that could be an incomplete entity.
std::size_t unsettled_entity(std::string_view text) {
  const std::size_t at = text.rfind('&');
  if (at == std::string_view::npos || text.size() - at >= kEntityBytesMax) return 0;
  return text.find(';', at) == std::string_view::npos ? text.size() - at : 0;
}

std::string without_entities(std::string_view text) {
  std::string out;
  for (std::size_t at = text.find('&'); at != std::string_view::npos; at = text.find('&')) {
    out += text.substr(0, at);
    text.remove_prefix(at);
    const std::size_t end = text.find(';');
    const std::string character = end < kEntityBytesMax ? entity(text.substr(1, end - 1)) : "";
    out += character.empty() ? "&" : character;
    text.remove_prefix(character.empty() ? 1 : end + 1);
  }
  return out.append(text);
}

class BlockArguments final : public ArgumentsReader {
 public:
  BlockArguments(const ToolDialect& dialect, const ToolParameters& parameters)
      : dialect_(dialect), parameters_(parameters) {}

  Step read(std::string& text, std::string& out) override {
    if (in_object_) return read_object(text);
    return in_value_ ? read_value(text, out) : read_block(text, out);
  }

  std::string end() const override {
    return first_ || in_value_ || in_object_ || object_ || wraps_ ? "" : "}";
  }

 private:
  enum class Found : std::uint8_t { yes, no, more };
  // The end of a value. at: its offset. closing: number of bytes of the closing marker. If `found` is false,
  // `at` is the number of bytes that certainly belong to the value.
  struct End {
    bool found;
    std::size_t at, closing = 0;
    bool cdata = false;  // whether a CDATA section begins or ends here, and the value continues
  };

  Found closes_call(std::string_view text) const;
  Found read_head(std::string& text);
  Step read_object(std::string& text);
  Step end_object(Found end, std::string& out) const;
  Step read_block(std::string& text, std::string& out);
  Step read_value(std::string& text, std::string& out);
  void begin_value(std::string& out);
  void end_value(std::string& out);
  End value_end(std::string_view text) const;
  void add(std::string_view piece, std::string& out);

  const ToolDialect& dialect_;
  const ToolParameters& parameters_;
  bool first_ = true;
  bool in_object_ = false;  // whether the model writes a JSON object instead of blocks
  bool object_ = false;     // whether value_ contains the bytes of this object
  JsonScan scan_;           // finds the end of the object

  // The members below belong to the current block.
  std::string name_;
  bool marks_text_ = true;
  bool in_value_ = false;
  bool at_start_ = false;  // true: no byte of the value was read yet
  bool text_ = false;      // true: the value is text and is written as it arrives
  bool in_cdata_ = false;
  bool wraps_ = false;  // true: the value may be an object that contains all parameters
  std::string value_;   // the value so far, if it is not written as it arrives
};

// Returns whether the text begins with a marker that closes the call or the list of calls. Closing markers of
// inner levels may be missing.
BlockArguments::Found BlockArguments::closes_call(std::string_view text) const {
  bool more = false;
  for (std::string_view marks : {dialect_.call.end, dialect_.end}) {
    for (marks = trimmed(marks); !marks.empty(); marks = trimmed(marks.substr(first_line(marks).size()))) {
      CallCursor cursor(text);
      if (cursor.literal(first_line(marks))) return Found::yes;
      more = more || cursor.starved();
    }
  }
  return more ? Found::more : Found::no;
}

BlockArguments::Found BlockArguments::read_head(std::string& text) {
  CallCursor begin(text);
  if (!begin.literal(without_quote(dialect_.parameter.begin)))
    return begin.starved() ? Found::more : Found::no;
  const std::string_view name_end = trimmed(dialect_.parameter.name_end);
  const bool attribute = name_end == ">" || name_end == "\">";
  std::string_view rest = std::string_view(text).substr(begin.at());
  if (dialect_.parameter.marks_text && rest.starts_with('"')) {
    rest.remove_prefix(1);
    begin.skip(1);
  }
  const std::size_t size = rest.find(dialect_.parameter.marks_text ? "\""
                                     : attribute                   ? ">"
                                                                   : first_tag(name_end));
  if (size == std::string_view::npos) return Found::more;
  CallCursor behind(rest.substr(size));
  bool closed = behind.literal(attribute ? ">" : name_end);
  marks_text_ = true;
  if (dialect_.parameter.marks_text) {
    marks_text_ = closed && behind.literal("true\">");
    // If the attribute is missing, the value is JSON ("false").
    closed = marks_text_ || (closed ? behind.literal("false\">") : behind.literal("\">"));
  }
  if (!closed) return behind.starved() ? Found::more : Found::no;
  name_ = attribute ? attribute_value(rest.substr(0, size)) : trimmed(rest.substr(0, size));
  if (name_.empty()) return Found::no;
  text.erase(0, begin.at() + size + behind.at());
  return Found::yes;
}

ArgumentsReader::Step BlockArguments::read_object(std::string& text) {
  const std::size_t size = scan_.take(text);
  value_.append(text, 0, size);
  text.erase(0, size);
  if (!scan_.done()) return Step::more;
  in_object_ = false;
  object_ = true;
  return text.empty() ? Step::more : Step::again;
}

// Called after an object that the model wrote instead of blocks. `end`: whether the marker that closes the
// call follows, as it must.
ArgumentsReader::Step BlockArguments::end_object(Found end, std::string& out) const {
  if (end == Found::no || !is_json(value_)) {
    out += "{}";
    return Step::broken;
  }
  const std::string fitted = parameters_.unwrapped(value_);
  out += fitted.empty() ? value_ : fitted;
  return Step::done;
}

ArgumentsReader::Step BlockArguments::read_block(std::string& text, std::string& out) {
  const Found end = closes_call(text);
  if ((wraps_ || object_) && end == Found::more) return Step::more;
  if (object_) return end_object(end, out);
  if (std::exchange(wraps_, false)) {
    const std::string unwrapped = end == Found::yes ? parameters_.unwrapped(value_) : "";
    out += unwrapped;
    if (!unwrapped.empty()) return Step::done;
    begin_value(out);
    end_value(out);
  }
  if (end == Found::yes) {
    out += first_ ? "{}" : "}";
    return Step::done;
  }
  if (CallCursor object(text); first_ && object.next_is('{')) {
    text.erase(0, object.at());
    in_object_ = true;
    return Step::again;
  }
  const Found head = read_head(text);
  if (head == Found::yes) {
    wraps_ = first_ && !parameters_.has(name_) && std::ranges::find(kWrappers, name_) != std::end(kWrappers);
    text_ = false;
    if (!wraps_) begin_value(out);
    in_value_ = at_start_ = true;
    return Step::again;
  }
  if (end == Found::more || head == Found::more) return Step::more;
  if (first_) {
    out += "{}";
    return Step::broken;
  }
  text.erase(0, text.find('<', 1));  // Text between two blocks is ignored.
  return text.empty() ? Step::more : Step::again;
}

void BlockArguments::begin_value(std::string& out) {
  out += std::exchange(first_, false) ? "{\"" : ", \"";
  out += grammar::json_escape(name_) + "\": ";
  text_ = parameters_.is_text(name_, marks_text_);
  if (text_) out += '"' + grammar::json_escape(value_);
}

void BlockArguments::end_value(std::string& out) {
  out += text_ ? "\"" : parameters_.value(name_, value_, marks_text_);
  value_.clear();
}

// Finds the end of the value. If the closing marker is missing, the value ends at the next block or at the
// end of the call.
BlockArguments::End BlockArguments::value_end(std::string_view text) const {
  const std::string_view closing = trimmed(dialect_.parameter.end);
  if (in_cdata_) {
    const std::size_t at = text.find(kCdataEnd);
    if (at != std::string_view::npos) return {true, at, kCdataEnd.size(), true};
    return {false, text.size() - unsettled(text, kCdataEnd)};
  }
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const std::string_view rest = text.substr(at);
    if (dialect_.parameter.xml && rest.starts_with(kCdata)) return {true, at, kCdata.size(), true};
    if (rest.starts_with(closing)) return {true, at, closing.size()};
    if (rest.starts_with(without_quote(dialect_.parameter.begin))) return {true, at};
    CallCursor call_end(rest);
    if (call_end.literal(dialect_.call.end)) return {true, at};
    const bool cdata = dialect_.parameter.xml && kCdata.starts_with(rest);
    if (call_end.starved() || cdata || closing.starts_with(rest) ||
        dialect_.parameter.begin.starts_with(rest))
      return {false, at};
  }
  return {false, text.size() - (dialect_.parameter.xml ? unsettled_entity(text) : 0)};
}

// If the closing marker begins with a line break, the line breaks directly after the name and before the
// marker do not belong to the value.
ArgumentsReader::Step BlockArguments::read_value(std::string& text, std::string& out) {
  const bool wrapped = dialect_.parameter.end.starts_with('\n');
  if (std::exchange(at_start_, false)) {
    if (wrapped && text.starts_with('\n')) text.erase(0, 1);
    if (text.empty()) return Step::more;
  }
  const End end = value_end(text);
  const bool layout = wrapped && end.at > 0 && text[end.at - 1] == '\n';
  add(std::string_view(text).substr(0, end.at - layout), out);
  if (!end.found) {
    text.erase(0, end.at - layout);
    return Step::more;
  }
  text.erase(0, end.at + end.closing);
  if (end.cdata) {
    in_cdata_ = !in_cdata_;
    return text.empty() ? Step::more : Step::again;
  }
  in_value_ = false;
  if (!wraps_) end_value(out);
  return text.empty() ? Step::more : Step::again;
}

void BlockArguments::add(std::string_view piece, std::string& out) {
  const std::string plain =
      dialect_.parameter.xml && !in_cdata_ ? without_entities(piece) : std::string(piece);
  if (text_)
    out += grammar::json_escape(plain);
  else
    value_ += plain;
}

}  // namespace

std::unique_ptr<ArgumentsReader> block_arguments(const ToolDialect& dialect,
                                                 const ToolParameters& parameters) {
  return std::make_unique<BlockArguments>(dialect, parameters);
}

}  // namespace octavo::openai
