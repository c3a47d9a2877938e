#include "fleet/route/request_cost.h"

#include <fmt/format.h>

#include <utility>

namespace octavo::fleet {
namespace {

constexpr std::size_t kTailBytes = 2048;  // more than the longest comment

// A comment begins a line. Event data cannot contain this text, because JSON strings contain no line feeds.
std::string comment_begin() { return fmt::format("\n: {}: ", kCostHeader); }

}  // namespace

void RequestCost::add(std::string_view text) {
  const auto cost = parse_cost_text(text);
  if (!cost) return;
  sum_ += *cost;
  reported_ = true;
}

void RequestCost::take_head(http::Response& answer) {
  const auto text = answer.headers.find(kCostHeader);
  if (!text) return;
  add(*text);
  http::Headers rest;
  for (const auto& [name, value] : answer.headers)
    if (!http::equal_ignoring_case(name, kCostHeader)) rest.add(name, value);
  answer.headers = std::move(rest);
}

std::string_view RequestCost::take_piece(std::string_view piece) {
  if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  const std::size_t line_end = tail_.size() - 1;
  tail_ += piece;
  const std::size_t at = tail_.find(comment_begin(), line_end);
  return at == std::string::npos ? piece : piece.substr(0, at - line_end);
}

void RequestCost::end_stream() {
  const std::string begin = comment_begin();
  if (const std::size_t at = tail_.rfind(begin); at != std::string::npos) {
    const std::size_t text = at + begin.size();
    if (const std::size_t end = tail_.find('\n', text); end != std::string::npos)
      add(std::string_view(tail_).substr(text, end - text));
  }
  tail_ = "\n";
}

std::string RequestCost::comment() const {
  return wanted_ ? fmt::format(": {}: {}\n\n", kCostHeader, cost_text(sum_)) : "";
}

}  // namespace octavo::fleet
