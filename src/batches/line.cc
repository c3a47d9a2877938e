#include "batches/line.h"

#include <boost/json/object.hpp>
#include <utility>

#include "base/exact_json.h"
#include "base/hash.h"
#include "base/quoted_text.h"
#include "http/target.h"

namespace octavo::batches {

namespace json = boost::json;

Result<Line> read_line(const std::string& text, std::string& custom_id) {
  boost::system::error_code bad;
  const json::value parsed = parse_exact_json(text, bad);
  if (bad || !parsed.is_object()) return invalid("", "the line is not a JSON object");
  const json::object& object = parsed.get_object();
  const auto field = [&](std::string_view name) -> const json::string* {
    const json::value* value = object.if_contains(name);
    return value == nullptr ? nullptr : value->if_string();
  };
  const json::string *id = field("custom_id"), *method = field("method"), *url = field("url");
  if (id == nullptr) return invalid("custom_id", "must be a string");
  if (id->size() > kCustomIdBytesMax)
    return invalid("custom_id", "must have at most {} bytes, got {}", kCustomIdBytesMax, id->size());
  custom_id = *id;
  if (method == nullptr || *method != "POST") return invalid("method", "must be \"POST\"");
  if (url == nullptr || !url->starts_with('/') || !http::parse_target(*url))
    return invalid("url", "must be a path such as /v1/chat/completions");
  const json::value* body = object.if_contains("body");
  if (body == nullptr || !body->is_object()) return invalid("body", "must be a JSON object");
  const json::value* stream = body->get_object().if_contains("stream");
  if (stream != nullptr && *stream != false && !stream->is_null())
    return invalid("body.stream", "must be false, because answers are written to a file");
  return Line{custom_id, std::string(*url), std::make_shared<const std::string>(exact_json_text(*body))};
}

std::string output_line(const std::string& custom_id, std::int64_t status, const std::string& body) {
  json::value answer = json_or_text(body);
  json::value error, response;
  if (status != 200) error = answer;
  if (status != 0)
    response = json::object{
        {"status_code", status}, {"request_id", "octavo-batch-" + random_hex()}, {"body", std::move(answer)}};
  return exact_json_text(json::object{{"id", "octavo-" + random_hex()},
                                      {"custom_id", custom_id},
                                      {"response", std::move(response)},
                                      {"error", std::move(error)}});
}

std::string random_hex() { return fmt::format("{:016x}{:016x}", secret_seed(), secret_seed()); }

json::value json_or_text(const std::string& text) {
  boost::system::error_code bad;
  json::value parsed = parse_exact_json(text, bad);
  return bad ? json::value(json::string(text)) : parsed;
}

std::optional<NumberedText> LineReader::next() {
  std::string text;
  while (std::getline(file_, text)) {
    ++number_;
    if (text.find_first_not_of(" \t\r") != std::string::npos) return NumberedText{number_, std::move(text)};
  }
  return std::nullopt;
}

}  // namespace octavo::batches
