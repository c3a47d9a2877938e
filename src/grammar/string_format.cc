#include "grammar/string_format.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/check.h"
#include "grammar/limits.h"
#include "grammar/regex.h"
#include "grammar/text_length.h"

namespace octavo::grammar {

namespace {

// The day must exist in the month, and February 29 only exists in leap years. Leap seconds (:60) are not
// included.
#define OCTAVO_DATE                                                                              \
  "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)" \
  "|02-(?:0[1-9]|1\\d|2[0-8]))"                                                                  \
  "|(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
#define OCTAVO_TIME \
  "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
// A duration has at least one component; after a T, at least one component must follow. Weeks cannot be
// combined with other components.
#define OCTAVO_TIME_PARTS "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S)"
#define OCTAVO_DAYS "(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)"
#define OCTAVO_BYTE "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define OCTAVO_IPV4 OCTAVO_BYTE "(?:\\." OCTAVO_BYTE "){3}"
#define OCTAVO_H16 "[0-9A-Fa-f]{1,4}"
#define OCTAVO_LS32 "(?:" OCTAVO_H16 ":" OCTAVO_H16 "|" OCTAVO_IPV4 ")"
#define OCTAVO_IPV6                                                                                       \
  "(?:(?:" OCTAVO_H16 ":){6}" OCTAVO_LS32 "|::(?:" OCTAVO_H16 ":){5}" OCTAVO_LS32 "|(?:" OCTAVO_H16       \
  ")?::(?:" OCTAVO_H16 ":){4}" OCTAVO_LS32 "|(?:(?:" OCTAVO_H16 ":){0,1}" OCTAVO_H16 ")?::(?:" OCTAVO_H16 \
  ":){3}" OCTAVO_LS32 "|(?:(?:" OCTAVO_H16 ":){0,2}" OCTAVO_H16 ")?::(?:" OCTAVO_H16 ":){2}" OCTAVO_LS32  \
  "|(?:(?:" OCTAVO_H16 ":){0,3}" OCTAVO_H16 ")?::" OCTAVO_H16 ":" OCTAVO_LS32 "|(?:(?:" OCTAVO_H16        \
  ":){0,4}" OCTAVO_H16 ")?::" OCTAVO_LS32 "|(?:(?:" OCTAVO_H16 ":){0,5}" OCTAVO_H16 ")?::" OCTAVO_H16     \
  "|(?:(?:" OCTAVO_H16 ":){0,6}" OCTAVO_H16 ")?::)"

// URIs as in RFC 3986. X: additional characters that IRIs allow (RFC 3987). IPvFuture addresses (v1.x) are
// not included.
#define OCTAVO_PERCENT "%[0-9A-Fa-f]{2}"
#define OCTAVO_UNRESERVED "A-Za-z0-9._~!$&'()*+,;="
#define OCTAVO_PCHAR(X) "(?:[" OCTAVO_UNRESERVED X ":@-]|" OCTAVO_PERCENT ")"
#define OCTAVO_AUTHORITY(X)                                                                \
  "//(?:(?:[" OCTAVO_UNRESERVED X ":-]|" OCTAVO_PERCENT ")*@)?(?:(?:[" OCTAVO_UNRESERVED X \
  "-]|" OCTAVO_PERCENT ")*|\\[" OCTAVO_IPV6 "\\])(?::\\d*)?"
#define OCTAVO_SEGMENTS(X) "(?:/" OCTAVO_PCHAR(X) "*)*"
#define OCTAVO_QUERY(X) "(?:\\?(?:" OCTAVO_PCHAR(X) "|[/?])*)?(?:#(?:" OCTAVO_PCHAR(X) "|[/?])*)?"
#define OCTAVO_ROOTED(X) "/(?:" OCTAVO_PCHAR(X) "+" OCTAVO_SEGMENTS(X) ")?"
#define OCTAVO_SCHEME "[A-Za-z][A-Za-z0-9+.-]*:"
#define OCTAVO_ABSOLUTE(X)                                                                          \
  OCTAVO_SCHEME "(?:" OCTAVO_AUTHORITY(X) OCTAVO_SEGMENTS(X) "|" OCTAVO_ROOTED(X) "|" OCTAVO_PCHAR( \
      X) "+" OCTAVO_SEGMENTS(X) ")?" OCTAVO_QUERY(X)
#define OCTAVO_RELATIVE(X)                                                                      \
  "(?:" OCTAVO_AUTHORITY(X)                                                                     \
      OCTAVO_SEGMENTS(X) "|" OCTAVO_ROOTED(X) "|(?:[" OCTAVO_UNRESERVED X "@-]|" OCTAVO_PERCENT \
                                              ")+" OCTAVO_SEGMENTS(X) ")?" OCTAVO_QUERY(X)
#define OCTAVO_IRI_MORE "\u00A0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF"
#define OCTAVO_VARIABLE \
  "(?:[A-Za-z0-9_]|" OCTAVO_PERCENT ")(?:\\.?(?:[A-Za-z0-9_]|" OCTAVO_PERCENT "))*(?::[1-9]\\d{0,3}|\\*)?"

// Simple regular expressions that mean the same in all dialects: groups nested up to three levels, without
// lookaround, names or references; classes of single characters, \d \w \s and common ranges; {n}, {n,},
// {m,n}.
#define OCTAVO_ESCAPE "\\\\[dDwWsSbnrtfv\\\\/^$*+?.()\\[\\]{}|-]"
#define OCTAVO_CLASS                                                  \
  "\\[\\^?(?:[^\\u0000-\\u001f\\\\\\[\\]^&~|-]|\\\\[dDwWsSnrtfv\\\\/" \
  "^$*+?.()\\[\\]{}|-]|a-z|A-Z|0-9|a-f|A-F)+-?\\]"
#define OCTAVO_ATOM "(?:[^\\u0000-\\u001f\\\\()\\[\\]{}*+?^$|]|" OCTAVO_ESCAPE "|" OCTAVO_CLASS
// {m,n} with m <= n. The alternatives: both numbers have one digit, or n has more digits than m. If both have
// two digits, n has a larger first digit, or both are from 10 to 19, or both have the same first digit and m
// ends with 0.
#define OCTAVO_RANGE                                                                                       \
  "0,\\d|1,[1-9]|2,[2-9]|3,[3-9]|4,[4-9]|5,[5-9]|6,[6-9]|7,[7-9]|8,[89]|9,9|\\d,[1-9]\\d{1,2}"             \
  "|[1-9]\\d,[1-9]\\d\\d|1\\d,[2-9]\\d|2\\d,[3-9]\\d|3\\d,[4-9]\\d|4\\d,[5-9]\\d|5\\d,[6-9]\\d|6\\d,[7-9]" \
  "\\d"                                                                                                    \
  "|7\\d,[89]\\d|8\\d,9\\d|10,1\\d|11,1[1-9]|12,1[2-9]|13,1[3-9]|14,1[4-9]|15,1[5-9]|16,1[6-9]|17,1[7-9]"  \
  "|18,1[89]|19,19|20,2\\d|30,3\\d|40,4\\d|50,5\\d|60,6\\d|70,7\\d|80,8\\d|90,9\\d"
#define OCTAVO_TIMES                            \
  ")(?:(?:[*+?]|\\{(?:\\d{1,3},?|" OCTAVO_RANGE \
  ")\\})\\?"                                    \
  "?)?|[\\^$])*"
#define OCTAVO_GROUP(INNER) "|\\((?:\\?:)?" INNER "(?:\\|" INNER ")*\\)"
#define OCTAVO_REGEX_0 "(?:" OCTAVO_ATOM OCTAVO_TIMES
#define OCTAVO_REGEX_1 "(?:" OCTAVO_ATOM OCTAVO_GROUP(OCTAVO_REGEX_0) OCTAVO_TIMES
#define OCTAVO_REGEX_2                           \
  "(?:" OCTAVO_ATOM OCTAVO_GROUP(OCTAVO_REGEX_1) \
  OCTAVO_TIMES

constexpr std::string_view kAtom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]";
constexpr std::string_view kWideAtom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u00A1-\uD7FF-]";
constexpr std::string_view kLabel = "[A-Za-z0-9](?:-?[A-Za-z0-9])*";
// Lower-case letters of left-to-right scripts that need no escape.
constexpr std::string_view kWideLabel =
    "(?:[a-z0-9\u00E0-\u00F6\u00F8-\u00FF\u03B1-\u03C9\u0430-\u044F\u3041-\u3096\u30A1-\u30FA\u4E00-"
    "\u9FA5\uAC00-\uD7A3]"
    "(?:-?[a-z0-9\u00E0-\u00F6\u00F8-\u00FF\u03B1-\u03C9\u0430-\u044F\u3041-\u3096\u30A1-\u30FA\u4E00-"
    "\u9FA5\uAC00-\uD7A3])*)";

struct Format {
  std::string_view name;
  // pattern of the whole text; "": made_of_labels() builds the format
  std::string_view pattern;
};
constexpr Format kFormats[] = {
    {"date", OCTAVO_DATE},
    {"time", OCTAVO_TIME},
    {"date-time", OCTAVO_DATE "T" OCTAVO_TIME},
    {"duration", "P(?:" OCTAVO_DAYS "(?:" OCTAVO_TIME_PARTS ")?|" OCTAVO_TIME_PARTS "|\\d+W)"},
    {"uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"},
    {"ipv4", OCTAVO_IPV4},
    {"ipv6", OCTAVO_IPV6},
    {"email", ""},
    {"idn-email", ""},
    {"hostname", ""},
    {"idn-hostname", ""},
    {"uri", OCTAVO_ABSOLUTE("")},
    {"uri-reference", "(?:" OCTAVO_ABSOLUTE("") "|" OCTAVO_RELATIVE("") ")"},
    {"iri", OCTAVO_ABSOLUTE(OCTAVO_IRI_MORE)},
    {"iri-reference", "(?:" OCTAVO_ABSOLUTE(OCTAVO_IRI_MORE) "|" OCTAVO_RELATIVE(OCTAVO_IRI_MORE) ")"},
    {"uri-template", "(?:[^\\u0000-\\u0020\"'%<>\\\\^`{|}\\u007f-\\u009f]|" OCTAVO_PERCENT
                     "|\\{[+#./;?&]?" OCTAVO_VARIABLE "(?:," OCTAVO_VARIABLE ")*\\})*"},
    {"regex", OCTAVO_REGEX_2 "(?:\\|" OCTAVO_REGEX_2 ")*"},
    {"json-pointer", "(?:/(?:[^~/]|~[01])*)*"},
    {"relative-json-pointer", "(?:0|[1-9]\\d*)(?:#|(?:/(?:[^~/]|~[01])*)*)"},
};
// These formats of OpenAPI and others only say how a value is stored or displayed.
constexpr std::string_view kFree[] = {"int32", "int64", "float", "double", "byte", "binary", "password"};

ExprId short_texts(Grammar& g, std::string_view pattern, std::uint32_t most) {
  const auto expr = add_regex(g, pattern, RegexMatch::full, "format");
  const auto all = regular_automaton(g, *expr, kPatternStatesMax);
  return g.leaf(*of_length(*all, {1, most}, kPatternStatesMax));
}

ExprId names(Grammar& g, std::string_view label, std::uint32_t labels, std::uint32_t length) {
  const ExprId one = short_texts(g, label, length);
  return g.sequence({one, g.repeat(g.sequence({g.literal("."), one}), 0, labels - 1)});
}

ExprId made_of_labels(Grammar& g, std::string_view format) {
  // With these numbers of labels, and of characters in a label, no text exceeds the limits on encoded texts:
  // 63 characters for a label, 253 for a name, 254 for an address.
  if (format == "hostname") return names(g, kLabel, 6, 40);
  if (format == "idn-hostname") return names(g, kWideLabel, 4, 12);
  const std::string_view atom = format == "email" ? kAtom : kWideAtom;
  const std::uint32_t local = format == "email" ? 64 : 16;
  return g.sequence({short_texts(g, fmt::format("{}+(?:\\.{}+)*", atom, atom), local), g.literal("@"),
                     format == "email" ? names(g, kLabel, 6, 30) : names(g, kWideLabel, 4, 12)});
}

}  // namespace

bool is_enforced_format(std::string_view format) {
  return std::ranges::find(kFormats, format, &Format::name) != std::end(kFormats);
}

bool is_format(std::string_view format) {
  return is_enforced_format(format) || std::ranges::find(kFree, format) != std::end(kFree);
}

std::optional<std::string_view> likely_format(std::string_view unknown) {
  const auto letters = [](std::string_view name) {
    std::string out;
    for (const char c : name)
      if (c != '-' && c != '_') out += static_cast<char>(c | 0x20);
    return out;
  };
  for (const Format& format : kFormats)
    if (letters(unknown) == letters(format.name)) return format.name;
  return std::nullopt;
}

std::optional<std::string_view> format_pattern(std::string_view format) {
  const auto it = std::ranges::find(kFormats, format, &Format::name);
  if (it == std::end(kFormats) || it->pattern.empty()) return std::nullopt;
  return it->pattern;
}

std::optional<std::string> format_pattern_within(std::string_view format, std::uint32_t min,
                                                 std::uint32_t max) {
  // kBefore: maximum number of characters before the counted part
  constexpr std::uint32_t kBefore = 180, kLeast = 400, kMost = 100'000;
  const bool wide = format.starts_with("iri");
  if ((!wide && !format.starts_with("uri")) || format == "uri-template") return std::nullopt;
  if (min > 1 || max < kLeast) return std::nullopt;
  const std::string more = wide ? OCTAVO_IRI_MORE : "";
  // one character, or the three characters that encode it (%XX)
  const auto unit = [&](const std::string& also) {
    return "(?:[" OCTAVO_UNRESERVED + more + also + "-]|" OCTAVO_PERCENT ")";
  };
  const std::uint32_t units = (std::min(max, kMost) - kBefore) / 3, last = units / 8;
  const auto up_to = [](std::uint32_t n) { return fmt::format("{{0,{}}}", n); };
  const std::string rest = unit(":@/?") + up_to(units - last),
                    fragment = "(?:#" + unit(":@/?") + up_to(last) + ")?",
                    authority = "//(?:[" OCTAVO_UNRESERVED + more + ":-]{1,40}@)?(?:[" OCTAVO_UNRESERVED +
                                more + "-]{0,90}|\\[" OCTAVO_IPV6 "\\])(?::\\d{0,5})?(?:[/?]" + rest + ")?",
                    rooted = "/(?:" + unit(":@") + rest + ")?", query = "\\?" + rest;
  const std::string absolute = "[A-Za-z][A-Za-z0-9+.-]{0,15}:(?:" + authority + "|" + rooted + "|" +
                               unit(":@") + rest + "|" + query + ")" + fragment;
  if (!format.ends_with("-reference")) return absolute;
  const std::string relative = "(?:" + authority + "|" + rooted + "|" + unit("@") + "{1,40}(?:[/?]" + rest +
                               ")?|" + query + ")" + fragment;
  return "(?:" + absolute + "|" + relative + "|#" + unit(":@/?") + up_to(last) + ")";
}

const Automaton& format_automaton(std::string_view format) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const Automaton>, std::less<>> known;
  const std::scoped_lock lock(mutex);
  if (const auto it = known.find(format); it != known.end()) return *it->second;
  Grammar g;
  const auto pattern = format_pattern(format);
  const ExprId expr =
      pattern ? *add_regex(g, *pattern, RegexMatch::full, "format") : made_of_labels(g, format);
  auto automaton = regular_automaton(g, expr, kDfaStatesMax);
  CHECK(automaton, "the format {} is too large", format);
  return *known.emplace(format, std::make_unique<const Automaton>(*std::move(automaton))).first->second;
}

}  // namespace octavo::grammar
