#include "serve/mcp/events.h"

#include <fmt/format.h>

#include <utility>

#include "base/exact_json.h"
#include "http/sse.h"

namespace octavo::mcp {

namespace json = boost::json;

void Events::write(std::string_view type, json::object fields) {
  if (!stream_) return;
  if (sequence_ == 0)
    exchange_->start_stream(
        {.content_type = "text/event-stream; charset=utf-8", .headers = {{"Cache-Control", "no-cache"}}});
  fields["type"] = type;
  fields["sequence_number"] = sequence_++;
  exchange_->write(http::sse_event(type, exact_json_text(fields)));
}

void Events::write_item(const json::object& item, std::int64_t index) {
  const std::string_view type = item.at("type").as_string();
  const json::object item_fields{{"output_index", index}, {"item_id", item.at("id")}};
  write("response.output_item.added", {{"output_index", index}, {"item", item}});
  if (type != "mcp_approval_request") {
    const bool failed = type == "mcp_call" && item.at("status") == "failed";
    write(fmt::format("response.{}.in_progress", type), item_fields);
    write(fmt::format("response.{}.{}", type, failed ? "failed" : "completed"), item_fields);
  }
  write("response.output_item.done", {{"output_index", index}, {"item", item}});
}

}  // namespace octavo::mcp
