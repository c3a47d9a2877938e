#include "grammar/string_format.h"

#include <array>
#include <utility>

namespace octavo::grammar {

namespace {

// Days are checked against their month, February 29 against leap years. Seconds run to 59: leap seconds are
// left out.
#define OCTAVO_DATE                                                                              \
  "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)" \
  "|02-(?:0[1-9]|1\\d|2[0-8]))"                                                                  \
  "|(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
#define OCTAVO_TIME \
  "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
// At least one component, at least one part of time after T; weeks alone.
#define OCTAVO_TIME_PARTS "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S)"
#define OCTAVO_DAYS "(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)"
#define OCTAVO_LABEL "[A-Za-z0-9](?:[A-Za-z0-9]|-[A-Za-z0-9]){0,30}"
#define OCTAVO_SHORT_LABEL "[A-Za-z0-9](?:[A-Za-z0-9]|-[A-Za-z0-9]){0,23}"
#define OCTAVO_ATEXT "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
#define OCTAVO_BYTE "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define OCTAVO_IPV4 OCTAVO_BYTE "(?:\\." OCTAVO_BYTE "){3}"
#define OCTAVO_H16 "[0-9A-Fa-f]{1,4}"
#define OCTAVO_LS32 "(?:" OCTAVO_H16 ":" OCTAVO_H16 "|" OCTAVO_IPV4 ")"
#define OCTAVO_PCHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kFormats = {{
    {"date", OCTAVO_DATE},
    {"time", OCTAVO_TIME},
    {"date-time", OCTAVO_DATE "T" OCTAVO_TIME},
    {"duration", "P(?:" OCTAVO_DAYS "(?:" OCTAVO_TIME_PARTS ")?|" OCTAVO_TIME_PARTS "|\\d+W)"},
    {"uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"},
    {"ipv4", OCTAVO_IPV4},
    {"ipv6",
     "(?:(?:" OCTAVO_H16 ":){6}" OCTAVO_LS32 "|::(?:" OCTAVO_H16 ":){5}" OCTAVO_LS32 "|(?:" OCTAVO_H16
     ")?::(?:" OCTAVO_H16 ":){4}" OCTAVO_LS32 "|(?:(?:" OCTAVO_H16 ":){0,1}" OCTAVO_H16 ")?::(?:" OCTAVO_H16
     ":){3}" OCTAVO_LS32 "|(?:(?:" OCTAVO_H16 ":){0,2}" OCTAVO_H16 ")?::(?:" OCTAVO_H16 ":){2}" OCTAVO_LS32
     "|(?:(?:" OCTAVO_H16 ":){0,3}" OCTAVO_H16 ")?::" OCTAVO_H16 ":" OCTAVO_LS32 "|(?:(?:" OCTAVO_H16
     ":){0,4}" OCTAVO_H16 ")?::" OCTAVO_LS32 "|(?:(?:" OCTAVO_H16 ":){0,5}" OCTAVO_H16 ")?::" OCTAVO_H16
     "|(?:(?:" OCTAVO_H16 ":){0,6}" OCTAVO_H16 ")?::)"},
    // Without quoted local parts and address literals; the domain as for hostname, with labels of at most 47
    // characters: an address takes no more than 241, where mail allows 254.
    {"email", OCTAVO_ATEXT "{1,32}(?:\\." OCTAVO_ATEXT "{1,16}){0,1}@" OCTAVO_SHORT_LABEL
                           "(?:\\." OCTAVO_SHORT_LABEL "){0,3}"},
    // Labels of at most 61 characters with single hyphens, so that reserved "??--" labels never arise; at
    // most four.
    {"hostname", OCTAVO_LABEL "(?:\\." OCTAVO_LABEL "){0,3}"},
    // scheme://authority/path?query#fragment or scheme:path, without IP literals and user information.
    {"uri", "[A-Za-z][A-Za-z0-9+.-]*:(?://[A-Za-z0-9._~-]+(?::\\d{1,5})?(?:/" OCTAVO_PCHAR "*)*|" OCTAVO_PCHAR
            "+(?:/" OCTAVO_PCHAR "*)*)"
            "(?:\\?(?:" OCTAVO_PCHAR "|[/?])*)?(?:#(?:" OCTAVO_PCHAR "|[/?])*)?"},
    {"json-pointer", "(?:/(?:[^~/]|~[01])*)*"},
    {"relative-json-pointer", "(?:0|[1-9]\\d*)(?:#|(?:/(?:[^~/]|~[01])*)*)"},
}};

}  // namespace

std::optional<std::string_view> format_pattern(std::string_view format) {
  for (const auto& [name, pattern] : kFormats)
    if (name == format) return pattern;
  return std::nullopt;
}

}  // namespace octavo::grammar
