#include "grammar/unicode.h"

#include <algorithm>
#include <iterator>

namespace octavo::grammar {

namespace {

struct CategoryRun {
  std::uint32_t first;
  std::uint8_t category;
};

constexpr CategoryRun kRuns[] = {
#include "grammar/unicode_categories.inc"
};

struct CategoryName {
  std::string_view abbreviation, name;
};

constexpr CategoryName kCategoryNames[] = {
    {"Lu", "Uppercase_Letter"},    {"Ll", "Lowercase_Letter"},  {"Lt", "Titlecase_Letter"},
    {"Lm", "Modifier_Letter"},     {"Lo", "Other_Letter"},      {"Mn", "Nonspacing_Mark"},
    {"Mc", "Spacing_Mark"},        {"Me", "Enclosing_Mark"},    {"Nd", "Decimal_Number"},
    {"Nl", "Letter_Number"},       {"No", "Other_Number"},      {"Pc", "Connector_Punctuation"},
    {"Pd", "Dash_Punctuation"},    {"Ps", "Open_Punctuation"},  {"Pe", "Close_Punctuation"},
    {"Pi", "Initial_Punctuation"}, {"Pf", "Final_Punctuation"}, {"Po", "Other_Punctuation"},
    {"Sm", "Math_Symbol"},         {"Sc", "Currency_Symbol"},   {"Sk", "Modifier_Symbol"},
    {"So", "Other_Symbol"},        {"Zs", "Space_Separator"},   {"Zl", "Line_Separator"},
    {"Zp", "Paragraph_Separator"}, {"Cc", "Control"},           {"Cf", "Format"},
    {"Cs", "Surrogate"},           {"Co", "Private_Use"},       {"Cn", "Unassigned"}};

constexpr CategoryName kGroupNames[] = {{"L", "Letter"},      {"M", "Mark"},   {"N", "Number"},
                                        {"P", "Punctuation"}, {"S", "Symbol"}, {"Z", "Separator"},
                                        {"C", "Other"}};

}  // namespace

CodePointSet CodePointSet::normalized() const {
  CodePointSet sorted = *this;
  std::ranges::sort(sorted.ranges);
  CodePointSet out;
  for (const CodePointRange& range : sorted.ranges) {
    if (!out.ranges.empty() && range.low <= out.ranges.back().high + 1)
      out.ranges.back().high = std::max(out.ranges.back().high, range.high);
    else
      out.ranges.push_back(range);
  }
  return out;
}

CodePointSet CodePointSet::complement() const {
  CodePointSet out;
  std::uint32_t next = 0;
  for (const CodePointRange& range : normalized().ranges) {
    if (range.low > next) out.add(next, range.low - 1);
    next = range.high + 1;
  }
  if (next <= kCodePointMax) out.add(next, kCodePointMax);
  return out;
}

std::optional<CodePointSet> general_category(std::string_view name) {
  std::string prefix;
  for (const auto& group : kGroupNames)
    if (name == group.abbreviation || name == group.name) prefix = group.abbreviation;
  for (const auto& category : kCategoryNames)
    if (name == category.abbreviation || name == category.name) prefix = category.abbreviation;
  if (prefix.empty()) return std::nullopt;
  CodePointSet set;
  for (std::size_t i = 0; i < std::size(kRuns); ++i)
    if (kCategoryNames[kRuns[i].category].abbreviation.starts_with(prefix))
      set.add(kRuns[i].first, i + 1 < std::size(kRuns) ? kRuns[i + 1].first - 1 : kCodePointMax);
  return set;
}

ExprId code_point_expr(Grammar& grammar, const CodePointSet& set) {
  ByteSet ascii;
  bool any_ascii = false;
  std::vector<ExprId> branches;
  for (const CodePointRange& range : set.normalized().ranges) {
    for (std::uint32_t c = range.low; c <= std::min(range.high, 0x7Fu); ++c) {
      ascii.add(c);
      any_ascii = true;
    }
    if (range.high > 0x7F) branches.push_back(grammar.code_points(std::max(range.low, 0x80u), range.high));
  }
  if (any_ascii) branches.insert(branches.begin(), grammar.bytes(ascii));
  return grammar.choice(std::move(branches));
}

void append_utf8(std::string& out, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | (c >> 6));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | (c >> 6 & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

std::optional<std::uint32_t> next_code_point(std::string_view text, std::size_t& at) {
  if (at >= text.size()) return std::nullopt;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[at + i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    ++at;
    return lead;
  }
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return std::nullopt;
  std::uint32_t c = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    c = c << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < kLeast[length] || c > kCodePointMax || (c >= 0xD800 && c < 0xE000)) return std::nullopt;
  at += length;
  return c;
}

std::optional<std::size_t> invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size())
    if (!next_code_point(text, at)) return at;
  return std::nullopt;
}

}  // namespace octavo::grammar
