#include "fleet/discover/kube_mirror.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <utility>

#include "base/quoted_text.h"
#include "fleet/discover/json_text.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr int kPageObjects = 500;
constexpr int kGone = 410;          // HTTP status: the requested resource version is too old
constexpr int kWatchSeconds = 300;  // maximum duration of a watch; the next watch continues
constexpr std::size_t kQuotedMax = 200;

Result<json::value> parsed(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object())
    return failure(ErrorCode::corrupt, "the message is not a JSON object: {}",
                   quoted_text(text.substr(0, kQuotedMax)));
  return value;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
    if (plain)
      out += c;
    else
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

std::string KubeMirror::target() const {
  std::string target = path_ + "?";
  if (!selector_.empty()) target += selector_ + "&";
  if (!listing_)
    return target + fmt::format("watch=1&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
                                kWatchSeconds, escaped(version_));
  target += fmt::format("limit={}", kPageObjects);
  if (!next_page_.empty()) target += "&continue=" + escaped(next_page_);
  return target;
}

void KubeMirror::start_over() {
  listing_ = true;
  next_page_.clear();
  listed_.clear();
}

Result<> KubeMirror::take(const json::value& object, std::set<std::string>& names) {
  const std::string name = text_at(object, "/metadata/name");
  if (name.empty()) return failure(ErrorCode::corrupt, "an object has no metadata.name");
  names.insert(name);
  sink_.put(name, object.get_object());
  return {};
}

Result<> KubeMirror::page(int status, std::string_view body) {
  if (status == kGone) start_over();  // the continue token has expired
  if (status != 200) return failure(ErrorCode::io, "HTTP {}: {}", status, body.substr(0, kQuotedMax));
  TRY(const json::value list, parsed(body));
  const json::value* items = list.get_object().if_contains("items");
  const std::string version = text_at(list, "/metadata/resourceVersion");
  if (!items || !items->is_array() || version.empty())
    return failure(ErrorCode::corrupt, "the reply is not a list: {}",
                   quoted_text(body.substr(0, kQuotedMax)));
  for (const json::value& item : items->get_array()) TRY_VOID(take(item, listed_));
  next_page_ = text_at(list, "/metadata/continue");
  if (!next_page_.empty()) return {};
  for (const std::string& name : names_)
    if (!listed_.contains(name)) sink_.removed(name);
  names_ = std::exchange(listed_, {});
  version_ = version;
  listing_ = false;
  sink_.settled();
  return {};
}

Result<> KubeMirror::line(std::string_view text) {
  TRY(const json::value event, parsed(text));
  const std::string type = text_at(event, "/type");
  const json::value* object = event.get_object().if_contains("object");
  if (!object || !object->is_object()) return failure(ErrorCode::corrupt, "an event has no object");
  if (type == "ERROR") {
    const json::value* code = object->get_object().if_contains("code");
    if (!code || !code->is_int64() || code->get_int64() != kGone)
      return failure(ErrorCode::io, "{}", text_at(*object, "/message"));
    start_over();
    return {};
  }
  if (const std::string version = text_at(*object, "/metadata/resourceVersion"); !version.empty())
    version_ = version;
  if (type == "BOOKMARK") return {};
  if (type == "ADDED" || type == "MODIFIED") {
    TRY_VOID(take(*object, names_));
  } else if (type == "DELETED") {
    const std::string name = text_at(*object, "/metadata/name");
    if (names_.erase(name) > 0) sink_.removed(name);
  } else {
    return failure(ErrorCode::corrupt, "an event has the unknown type {}", quoted_text(type));
  }
  sink_.settled();
  return {};
}

Result<> KubeMirror::refused(int status, std::string_view body) {
  if (status == kGone) {
    start_over();
    return {};
  }
  return failure(ErrorCode::io, "HTTP {}: {}", status, body.substr(0, kQuotedMax));
}

}  // namespace octavo::fleet
