#include "fleet/pick/model_rewriting.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>

namespace octavo::fleet {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string quoted(std::string_view text) { return boost::json::serialize(boost::json::string(text)); }

std::size_t behind_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return at + 1;
}

std::size_t behind_value(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = behind_string(text, at);
      if (depth == 0) return at;
      continue;
    }
    if (depth == 0 && (c == ',' || c == '}' || c == ']' || kSpace.contains(c))) return at;
    if (c == '{' || c == '[') ++depth;
    ++at;
    if ((c == '}' || c == ']') && --depth == 0) return at;
  }
  return at;
}

}  // namespace

std::string with_model(std::string_view body, std::string_view model) {
  std::string out;
  std::size_t copied = 0;
  const auto next = [&](std::size_t at) { return std::min(body.find_first_not_of(kSpace, at), body.size()); };
  for (std::size_t at = next(next(0) + 1); at < body.size() && body[at] == '"';) {
    const std::size_t key_end = behind_string(body, at);
    const std::string_view key = body.substr(at, key_end - at);
    const std::size_t value = next(next(key_end) + 1);
    const std::size_t value_end = behind_value(body, value);
    if (key == "\"model\"") {
      out += body.substr(copied, value - copied);
      out += quoted(model);
      copied = value_end;
    }
    at = next(next(value_end) + 1);
  }
  return out += body.substr(std::min(copied, body.size()));
}

ModelRestorer::ModelRestorer(std::string_view sent, std::string_view requested) {
  for (const int spaced : {0, 1}) {
    const std::string front = spaced ? "\"model\": " : "\"model\":";
    patterns_[spaced] = front + quoted(sent);
    replacements_[spaced] = front + quoted(requested);
  }
}

std::string ModelRestorer::push(std::string_view piece, bool last) {
  kept_ += piece;
  std::string out;
  std::size_t at = 0;
  while (at < kept_.size()) {
    const std::size_t quote = std::min(kept_.find('"', at), kept_.size());
    out.append(kept_, at, quote - at);
    at = quote;
    const std::string_view rest = std::string_view(kept_).substr(at);
    if (rest.empty()) break;
    bool matched = false;
    bool begun = false;
    for (const int i : {0, 1}) {
      matched = rest.starts_with(patterns_[i]);
      if (matched) {
        out += replacements_[i];
        at += patterns_[i].size();
        break;
      }
      begun = begun || std::string_view(patterns_[i]).starts_with(rest);
    }
    if (matched) continue;
    if (begun && !last) break;
    out += kept_[at++];
  }
  kept_.erase(0, at);
  return out;
}

}  // namespace octavo::fleet
