#include "serve/openai/compaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/value.hpp>
#include <iterator>
#include <span>
#include <utility>

#include "base/base64.h"
#include "base/exact_json.h"
#include "serve/openai/responses_reply.h"
#include "serve/openai/stored_items.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

constexpr std::string_view kRequest =
    "Write a summary of this conversation. It replaces the conversation, so it must contain all that is "
    "needed "
    "to continue: the goals and instructions of the user, the decisions, the facts and names that were "
    "found, "
    "the state of the work, and the next steps. Write only the summary.";
constexpr std::string_view kHeading = "Summary of the earlier conversation:\n";
constexpr std::string_view kMark = "octavo:";  // beginning of the content of this server's items

bool is_from_user(const json::value& item) {
  const json::object* fields = item.if_object();
  const json::value* role = fields ? fields->if_contains("role") : nullptr;
  return role && *role == "user";
}

class CompactionReply final : public Reply {
 public:
  CompactionReply(ReplyOptions options, json::array items)
      : options_(std::move(options)), items_(std::move(items)) {}

  // The route has no streams.
  std::string open(int, const EchoedPrompt&, const Usage*) override { return ""; }
  std::string part(const AnswerPart&, const Usage*) override { return ""; }
  std::string close(const Usage&) override { return ""; }
  std::string failed(const Error& error) override { return stream_failed(error); }
  bool shows_cached_tokens() const override { return true; }

  std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt>,
                    const Usage& usage) override {
    json::array kept;
    std::ranges::copy_if(items_, std::back_inserter(kept), is_from_user);
    json::array output = with_ids(kept, [&](std::string_view prefix, std::size_t index) {
      return fmt::format("{}_{}_{}", prefix, options_.id, index);
    });
    output.push_back(
        json::object{{"id", "cmp_" + options_.id},
                     {"type", "compaction"},
                     {"encrypted_content", encode_base64(std::string(kMark) + parts.front().text)}});
    return exact_json_text(json::object{{"id", options_.id},
                                        {"object", "response.compaction"},
                                        {"created_at", options_.created},
                                        {"model", options_.model},
                                        {"output", std::move(output)},
                                        {"usage", response_usage(usage)}});
  }

 private:
  const ReplyOptions options_;
  const json::array items_;
};

}  // namespace

bool is_compaction(std::string_view type) { return type == "compaction" || type == "compaction_summary"; }

Result<std::string> read_compaction(Fields& item) {
  std::string content;
  TRY_VOID(item.text("encrypted_content", content));
  const auto text = decode_base64(content);
  if (!text || !text->starts_with(kMark))
    return invalid(item.full_name("encrypted_content"),
                   "must be the value that /v1/responses/compact of this server has returned");
  return std::string(kHeading) + text->substr(kMark.size());
}

json::object compaction_body(json::object body) {
  constexpr std::array kOthers{"background", "conversation",   "include", "max_tool_calls", "store",
                               "stream",     "stream_options", "text",    "tool_choice"};
  for (const std::string_view name : kOthers) body.erase(name);
  json::value& input = body["input"];
  if (input.is_null()) input = json::array();
  if (input.is_string()) input = json::array{json::object{{"role", "user"}, {"content", input}}};
  if (json::array* items = input.if_array())
    items->push_back(json::object{{"role", "user"}, {"content", kRequest}});
  const json::value* tools = body.if_contains("tools");
  if (tools && tools->is_array() && !tools->get_array().empty()) body["tool_choice"] = "none";
  body["store"] = false;
  return body;
}

std::unique_ptr<Reply> compaction_reply(ReplyOptions options, json::array items) {
  return std::make_unique<CompactionReply>(std::move(options), std::move(items));
}

}  // namespace octavo::openai
