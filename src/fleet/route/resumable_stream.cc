#include "fleet/route/resumable_stream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/exact_json.h"
#include "fleet/relay/json_body.h"
#include "http/sse.h"
#include "openai/routes.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::size_t kEventBytesMax = 16 << 20;  // larger events fail the stream

bool is_true(const json::object& body, std::string_view name) {
  const json::value* value = body.if_contains(name);
  return value && value->is_bool() && value->get_bool();
}

bool is_false(const json::object& body, std::string_view name) {
  const json::value* value = body.if_contains(name);
  return value && value->is_bool() && !value->get_bool();
}

// The last event of a response contains the log-probabilities of all tokens, which the next worker does not
// have for earlier tokens.
bool requests_logprobs(const json::object& body) {
  const json::value* include = body.if_contains("include");
  return include && include->is_array() && !include->get_array().empty();
}

bool requests_one_answer(const json::object& body) {
  const json::value* n = body.if_contains("n");
  return (!n || n->is_null() || (n->is_int64() && n->get_int64() == 1)) && !has_several_prompts(body);
}

bool has_content(const json::object& choice) {
  const auto text = [](const json::value* value) {
    return value && value->is_string() && !value->get_string().empty();
  };
  if (text(choice.if_contains("text")) || text(choice.if_contains("finish_reason"))) return true;
  const json::value* delta = choice.if_contains("delta");
  if (!delta || !delta->is_object()) return false;
  for (const auto& [name, value] : delta->get_object())
    if (name != "role" && (text(&value) || value.is_array())) return true;
  return false;
}

// Returns whether the event reports a failure of the worker. An error that names a field, such as
// "timeout", is caused by the request.
bool server_failed(const json::object& chunk) {
  const json::value* code = find_path(chunk, {"error", "code"});
  const json::value* param = find_path(chunk, {"error", "param"});
  return code && code->is_int64() && code->get_int64() >= 500 && !(param && param->is_string());
}

}  // namespace

std::optional<ResumableStream> ResumableStream::of(std::string_view path, std::string_view body) {
  if (const openai::Route* route = openai::find_route(path); !route || !route->resumable) return std::nullopt;
  std::optional<json::object> request = json_object(body);
  if (!request || !is_true(*request, "stream") || !requests_one_answer(*request)) return std::nullopt;
  // These streams cannot continue at another worker. Without reasoning, some token ids are hidden, too.
  // kv_transfer_params and resume_token_ids mean that another program controls the workers.
  if (is_false(*request, "include_reasoning") || request->contains("kv_transfer_params") ||
      request->contains("resume_token_ids"))
    return std::nullopt;
  if (openai::find_route(path)->named_events && requests_logprobs(*request)) return std::nullopt;
  ResumableStream stream;
  stream.named_ = openai::find_route(path)->named_events;
  stream.shows_ids_ = is_true(*request, "return_token_ids");
  if (const json::value* options = request->if_contains("stream_options"); options && options->is_object())
    stream.shows_usage_ = is_true(options->get_object(), "include_usage");
  if (stream.shows_ids_) {
    stream.body_ = body;
  } else if (!request->contains("return_token_ids")) {
    stream.body_ = with_field(body, "return_token_ids", "true");
  } else {
    (*request)["return_token_ids"] = true;
    stream.body_ = exact_json_text(*request);
  }
  return stream;
}

std::string ResumableStream::body() const {
  if (!begun()) return body_;
  std::string body = with_field(body_, "resume_token_ids", fmt::format("[{}]", fmt::join(tokens_, ",")));
  // The next worker must store the response under the id that the client has received from the first worker.
  constexpr std::string_view kResponse = "resp_";
  if (!named_ || !id_.starts_with(kResponse)) return body;
  json::object request = *json_object(body);
  const json::value* own = request.if_contains("request_id");
  if (own && own->is_string() && !own->get_string().empty()) return body;
  request["request_id"] = id_.substr(kResponse.size());
  return exact_json_text(request);
}

std::string ResumableStream::push(std::string_view bytes) {
  std::string out;
  for (const std::string& text : events_.push(bytes))
    if (!ended_ && !failed_) out += event(text);
  failed_ = failed_ || events_.rest().size() > kEventBytesMax;
  return out;
}

std::string ResumableStream::finish() {
  const std::string last = events_.rest();
  events_.clear();
  if (ended_) return "";
  const std::string out = event(last);
  return out + std::exchange(held_, {});
}

std::string ResumableStream::event(std::string_view text) {
  if (named_) return named_event(text);
  const std::optional<std::string_view> data = data_of(text);
  if (!data) return std::string(text);
  ended_ = *data == "[DONE]";
  return ended_ ? std::string(text) : chunk(text, *data);
}

std::string ResumableStream::chunk(std::string_view text, std::string_view data) {
  std::optional<json::object> chunk = json_object(data);
  if (!chunk || (failed_ = server_failed(*chunk))) return failed_ ? "" : std::string(text);
  bool changed = migrated_;
  const auto take_out = [&](json::object& from, std::string_view name) {
    if (!shows_ids_) changed |= from.erase(name) > 0;
  };
  const auto note_prompt = [&](json::object& in) {
    const json::value* ids = in.if_contains("prompt_token_ids");
    if (ids && ids->is_array()) prompt_tokens_ = ids->get_array().size();
    take_out(in, "prompt_token_ids");
  };
  note_prompt(*chunk);
  if (json::value* choices = chunk->if_contains("choices"); choices && choices->is_array())
    for (json::value& each : choices->get_array()) {
      if (!each.is_object()) continue;
      json::object& choice = each.get_object();
      note_prompt(choice);
      const json::value* ids = choice.if_contains("token_ids");
      if (ids && ids->is_array()) {
        for (const json::value& id : ids->get_array()) tokens_.push_back(id.is_int64() ? id.get_int64() : -1);
      } else if (has_content(choice)) {
        knows_tokens_ = false;
      }
      const json::value* reason = choice.if_contains("finish_reason");
      finished_ = finished_ || (reason && reason->is_string());
      take_out(choice, "token_ids");
    }
  // All events of a response must share the id and the creation time.
  const json::value* id = chunk->if_contains("id");
  const json::value* created = chunk->if_contains("created");
  if (!begun() && id && id->is_string()) {
    id_ = id->get_string();
    created_ = created && created->is_int64() ? created->get_int64() : 0;
  }
  if (migrated_) {
    (*chunk)["id"] = id_;
    (*chunk)["created"] = created_;
  }
  std::string out = changed ? http::sse_event(exact_json_text(*chunk)) : std::string(text);
  chunk->erase("choices");
  chunk->erase("usage");
  head_ = exact_json_text(*chunk);
  return out;
}

void ResumableStream::lost() {
  events_.clear();
  failed_ = false;
  migrated_ = begun();
  held_.clear();
  number_ = sent_;
}

std::optional<std::string> ResumableStream::rest() const {
  if (!finished_) return std::nullopt;
  std::string out;
  if (shows_usage_) {
    const std::size_t count = tokens_.size();
    const json::object usage{{"prompt_tokens", prompt_tokens_},
                             {"total_tokens", prompt_tokens_ + count},
                             {"completion_tokens", count}};
    out = http::sse_event(with_field(with_field(head_, "usage", exact_json_text(usage)), "choices", "[]"));
  }
  return out + http::sse_event("[DONE]");
}

}  // namespace octavo::fleet
