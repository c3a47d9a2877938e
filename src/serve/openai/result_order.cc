#include "serve/openai/result_order.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "serve/openai/client_tools.h"

namespace octavo::openai {
namespace {

namespace json = boost::json;

// Ids are referenced until take().
class ResultOrder {
 public:
  void add_call(std::string_view id) {
    end_run();
    distinct_ = calls_.emplace(id, calls_.size()).second && distinct_;
  }

  void add_result(std::size_t index, std::string_view id) { run_.emplace_back(index, id); }

  void add_other(std::size_t index) {
    end_run();
    order_.push_back(index);
  }

  std::vector<std::size_t> take() {
    end_run();
    return std::move(order_);
  }

 private:
  void end_run() {
    if (run_.empty()) return;
    std::unordered_set<std::string_view> seen;
    const bool sorts = distinct_ && std::ranges::all_of(run_, [&](const auto& result) {
                         return calls_.contains(result.second) && seen.insert(result.second).second;
                       });
    if (sorts) std::ranges::sort(run_, {}, [&](const auto& result) { return calls_.at(result.second); });
    for (const auto& [index, id] : run_) order_.push_back(index);
    run_.clear();
    calls_.clear();
    distinct_ = true;
  }

  std::vector<std::size_t> order_;
  std::unordered_map<std::string_view, std::size_t> calls_;  // id to position; calls since the last results
  std::vector<std::pair<std::size_t, std::string_view>> run_;
  bool distinct_ = true;  // whether the ids of all calls differ
};

// Returns "" if the value has no such text.
std::string_view member_text(const json::value& value, std::string_view key) {
  const json::value* text = value.is_object() ? value.get_object().if_contains(key) : nullptr;
  return text && text->is_string() ? std::string_view(text->get_string()) : std::string_view();
}

void add_calls(const json::object& message, ResultOrder& order) {
  const json::value* calls = message.if_contains("tool_calls");
  if (!calls || !calls->is_array()) return;
  for (const json::value& call : calls->get_array()) order.add_call(member_text(call, "id"));
}

}  // namespace

std::vector<std::size_t> message_order(const json::array& messages) {
  ResultOrder order;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (member_text(messages[i], "role") == "tool") {
      order.add_result(i, member_text(messages[i], "tool_call_id"));
      continue;
    }
    order.add_other(i);
    if (messages[i].is_object()) add_calls(messages[i].get_object(), order);
  }
  return order.take();
}

std::vector<std::size_t> item_order(const json::array& items) {
  ResultOrder order;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string_view type = member_text(items[i], "type"), id = member_text(items[i], "call_id");
    const ClientTool* tool = client_tool(type);
    if (type == "function_call_output" || type == "custom_tool_call_output" ||
        (tool && type == tool->output)) {
      order.add_result(i, id.empty() ? member_text(items[i], "id") : id);
      continue;
    }
    order.add_other(i);
    if (type == "function_call" || type == "custom_tool_call" || tool) order.add_call(id);
  }
  return order.take();
}

std::vector<std::size_t> block_order(const json::object* before, const json::array& blocks) {
  ResultOrder order;
  if (before) add_calls(*before, order);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (member_text(blocks[i], "type") == "tool_result")
      order.add_result(i, member_text(blocks[i], "tool_use_id"));
    else
      order.add_other(i);
  }
  return order.take();
}

}  // namespace octavo::openai
