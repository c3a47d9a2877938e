#include "fleet/discover/etcd_mirror.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "base/base64.h"
#include "base/quoted_text.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::size_t kQuotedMax = 200;

// Returns the exclusive end of the key range. It is the prefix without 0xff bytes at its end, and with its
// last byte incremented.
std::string end_of(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');  // means all keys
  prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

json::object keys_of(const std::string& prefix) {
  return {{"key", encode_base64(prefix)}, {"range_end", encode_base64(end_of(prefix))}};
}

Result<json::object> parsed(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object())
    return failure(ErrorCode::corrupt, "the message is not a JSON object: {}",
                   quoted_text(text.substr(0, kQuotedMax)));
  return std::move(value.get_object());
}

// Decodes a field of bytes. Returns "" if the field is missing, because protobuf's JSON omits empty values.
Result<std::string> bytes_of(const json::object& object, std::string_view name) {
  const json::value* field = object.if_contains(name);
  if (field == nullptr) return std::string();
  if (!field->is_string()) return failure(ErrorCode::corrupt, "{} must be a string", name);
  return decode_base64(field->get_string());
}

// Returns the revision in the response's header. In protobuf's JSON, a 64-bit integer is a string.
Result<std::int64_t> revision_of(const json::object& answer) {
  const json::value* header = answer.if_contains("header");
  const json::value* field =
      header != nullptr && header->is_object() ? header->get_object().if_contains("revision") : nullptr;
  std::int64_t revision = 0;
  if (field != nullptr && field->is_string()) {
    const std::string_view text = field->get_string();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
    if (error == std::errc() && end == text.data() + text.size()) return revision;
  }
  return failure(ErrorCode::corrupt, "a reply has no header.revision");
}

}  // namespace

std::string EtcdMirror::range() const { return json::serialize(keys_of(prefix_)); }

std::string EtcdMirror::watch() const {
  json::object create = keys_of(prefix_);
  create["start_revision"] = std::to_string(revision_ + 1);
  create["progress_notify"] = true;
  return json::serialize(json::object{{"create_request", std::move(create)}});
}

Result<> EtcdMirror::listed(std::string_view body) {
  TRY(const json::object answer, parsed(body));
  TRY(const std::int64_t revision, revision_of(answer));
  std::map<std::string, std::string> values;
  if (const json::value* list = answer.if_contains("kvs"); list != nullptr) {
    if (!list->is_array()) return failure(ErrorCode::corrupt, "kvs is not a list");
    for (const json::value& item : list->get_array()) {
      if (!item.is_object()) return failure(ErrorCode::corrupt, "kvs must be a list of objects");
      TRY(std::string key, bytes_of(item.get_object(), "key"));
      TRY(values[std::move(key)], bytes_of(item.get_object(), "value"));
    }
  }
  values_ = std::move(values);
  revision_ = revision;
  return {};
}

Result<bool> EtcdMirror::line(std::string_view text) {
  TRY(const json::object line, parsed(text));
  const json::value* result = line.if_contains("result");
  if (result == nullptr || !result->is_object())
    return failure(ErrorCode::io, "the watch has ended: {}", quoted_text(text.substr(0, kQuotedMax)));
  const json::object& answer = result->get_object();
  // etcd cancels a watch if the revision was compacted, or after an internal error.
  if (const json::value* canceled = answer.if_contains("canceled");
      canceled != nullptr && canceled->is_bool() && canceled->get_bool())
    return failure(ErrorCode::io, "the watch was canceled");
  TRY(revision_, revision_of(answer));
  const json::value* events = answer.if_contains("events");
  if (events == nullptr) return false;  // the watch was created, or the line is a progress notification
  if (!events->is_array()) return failure(ErrorCode::corrupt, "events is not a list");
  for (const json::value& item : events->get_array()) {
    const json::value* kv = item.is_object() ? item.get_object().if_contains("kv") : nullptr;
    if (kv == nullptr || !kv->is_object()) return failure(ErrorCode::corrupt, "an event has no kv");
    TRY(std::string key, bytes_of(kv->get_object(), "key"));
    const json::value* type = item.get_object().if_contains("type");  // missing for PUT
    if (type != nullptr && type->is_string() && type->get_string() == "DELETE") {
      values_.erase(key);
    } else {
      TRY(values_[std::move(key)], bytes_of(kv->get_object(), "value"));
    }
  }
  return true;
}

}  // namespace octavo::fleet
