#include "serve/openai/named_events.h"

#include <boost/json/value_from.hpp>
#include <utility>

#include "base/exact_json.h"
#include "http/sse.h"

namespace octavo::openai {

void NamedEvents::add(std::string_view name, boost::json::object fields) {
  write_last();
  last_name_ = name;
  last_ = std::move(fields);
}

void NamedEvents::count(const std::vector<TokenId>& tokens) {
  if (shows_tokens_) tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

std::string NamedEvents::take() {
  if (shows_tokens_ && !last_name_.empty())
    last_["token_ids"] = boost::json::value_from(std::exchange(tokens_, {}));
  return take_unfinished();
}

std::string NamedEvents::take_unfinished() {
  write_last();
  return std::exchange(text_, {});
}

void NamedEvents::write_last() {
  if (last_name_.empty()) return;
  text_ += http::sse_event(last_name_, exact_json_text(last_));
  last_name_.clear();
}

}  // namespace octavo::openai
