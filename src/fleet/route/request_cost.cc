#include "fleet/route/request_cost.h"

#include <fmt/format.h>

#include <utility>

namespace octavo::fleet {
namespace {

constexpr std::size_t kTailBytes = 2048;  // more than the longest comment

}  // namespace

bool RequestCost::add(std::string_view text) {
  const auto cost = parse_cost_text(text);
  if (!cost) return false;
  sum_ += *cost;
  return reported_ = true;
}

bool RequestCost::take_head(http::Response& answer) {
  const auto text = answer.headers.find(kCostHeader);
  if (!text) return false;
  const bool added = add(*text);
  http::Headers rest;
  for (const auto& [name, value] : answer.headers)
    if (!http::equal_ignoring_case(name, kCostHeader)) rest.add(name, value);
  answer.headers = std::move(rest);
  return added;
}

// The comment begins a line. Event data cannot contain the mark after a line feed, because JSON strings
// contain no line feeds.
std::string_view RequestCost::take_piece(std::string_view piece) {
  if (in_comment_) {
    if (tail_.size() < kTailBytes) tail_ += piece;
    return {};
  }
  const std::string mark = fmt::format(": {}: ", kCostHeader);
  const bool line = !held_.empty() || at_line_;
  std::string text = std::exchange(held_, {});
  text += piece;
  std::size_t at = line && text.starts_with(mark) ? 0 : text.find("\n" + mark);
  if (at != std::string::npos) {
    if (text[at] == '\n') ++at;
    in_comment_ = true;
    tail_ = text.substr(at + mark.size());
    text.resize(at);
  } else {
    const std::size_t end = text.rfind('\n');
    const std::size_t last_line = end != std::string::npos ? end + 1 : line ? 0 : text.size();
    if (mark.starts_with(std::string_view(text).substr(last_line))) {
      held_ = text.substr(last_line);
      text.resize(last_line);
    }
    if (!text.empty()) at_line_ = text.back() == '\n';
  }
  out_ = std::move(text);
  return out_;
}

RequestCost::StreamEnd RequestCost::end_stream() {
  bool reported = false;
  if (const std::size_t end = tail_.find('\n'); in_comment_ && end != std::string::npos)
    reported = add(std::string_view(tail_).substr(0, end));
  tail_.clear();
  in_comment_ = false;
  at_line_ = true;
  return {.last_line = std::exchange(held_, {}), .reported = reported};
}

std::string RequestCost::comment() const {
  return wanted_ ? fmt::format(": {}: {}\n\n", kCostHeader, cost_text(sum_)) : "";
}

}  // namespace octavo::fleet
