#include "serve/mcp/session.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/exact_json.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "openai/errors.h"
#include "openai/request_fields.h"
#include "serve/mcp/events.h"
#include "serve/mcp/tools.h"
#include "serve/mcp/turn.h"
#include "serve/openai/responses_request.h"
#include "serve/routes/handlers.h"

namespace octavo::mcp {

namespace json = boost::json;

namespace {

constexpr int kTurnsMax = 32;  // maximum number of turns with tools; in the turn after them, the model must
                               // answer without tools

// Adds each number in `more` to the field with the same name in `sum`.
void add_numbers(const json::object& more, json::object& sum) {
  for (const auto& [name, value] : more) {
    if (value.is_object()) {
      json::value& inner = sum[name];
      if (!inner.is_object()) inner.emplace_object();
      add_numbers(value.get_object(), inner.get_object());
    } else if (value.is_int64()) {
      const json::value* before = sum.if_contains(name);
      sum[name] = value.get_int64() + (before && before->is_int64() ? before->get_int64() : 0);
    }
  }
}

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Service> service, std::shared_ptr<http::Exchange> exchange, json::object body,
          bool stream)
      : service_(std::move(service)),
        exchange_(std::move(exchange)),
        body_(std::move(body)),
        events_(exchange_, stream) {}

  ~Session();

  Result<> start();

 private:
  struct TurnState {
    json::object response{};
    std::string end{};              // type of the turn's last event
    std::optional<Call> call{};     // the call that the model is writing
    std::deque<Call> calls{};
    bool waits_for_client = false;  // whether the client must first approve a call or return the result of a
                                    // function
  };
  struct Counts {
    int turns = 0, runs = 0;
    int runs_max = std::numeric_limits<int>::max();
  };

  void post(std::size_t server, std::function<void()> work);
  bool closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  void list_tools(std::size_t server);
  Result<> list_tools_of(std::size_t server);
  void run_approved();
  void start_turn();
  json::object turn_body() const;
  json::array items() const;
  void take(json::object event);
  bool take_call(std::string_view type, const json::object& event);
  void begin_call(const json::object& item);
  void end_call(const std::string& arguments);
  void open(json::object response);
  void turn_ended();
  void run_calls();
  void run(const ServerTool& tool, json::object& item);
  void add_result(Call call);
  void close_cost() {
    const std::lock_guard lock(mutex_);
    cost_open_.reset();
  }
  void finish();
  void refuse(http::Response response);
  void fail(const Error& error) { refuse(openai::error_response(error)); }
  Error busy(std::size_t server) const;
  std::int64_t next_index() const { return static_cast<std::int64_t>(output_.size()); }

  const std::shared_ptr<Service> service_;
  const std::shared_ptr<http::Exchange> exchange_;
  const json::object body_;
  Events events_;

  Servers servers_{};
  openai::ResponsesRequest history_{};  // items of earlier responses
  json::array input_{};
  json::array prelude_{};  // output items before those of the first turn
  json::array output_{};
  json::object response_{};  // the response object of the first turn
  json::object usage_{};     // usage of all turns together
  TurnState now_{};
  std::int64_t base_ = 0;  // index in output_ of the current turn's first item
  Counts counts_{};
  bool store_ = true;

  std::mutex mutex_;  // guards all members below
  std::shared_ptr<Turn> turn_{};
  bool closed_ = false;
  UnreadCosts::Open cost_open_{};  // keeps the id of the response's cost open until the last turn has begun
};

Result<> Session::start() {
  openai::Fields fields(body_);
  bool background = false;
  TRY_VOID(fields.boolean("background", background));
  if (background) return invalid("background", "cannot be combined with tools of MCP servers");
  TRY_VOID(fields.boolean("store", store_));
  TRY_VOID(fields.integer("max_tool_calls", counts_.runs_max, 1));
  TRY(servers_, read_servers(body_, service_->options.access.mcp));
  TRY_VOID(openai::read_history(fields, *service_->responses, history_));
  const json::value* input = fields.any("input");
  if (!input) return invalid("input", "is missing");
  if (input->is_array())
    input_ = input->get_array();
  else
    input_.push_back(json::object{{"role", "user"}, {"content", *input}});
  cost_open_ = routes::account_of(*service_, exchange_->request()).cost_open;
  exchange_->on_close([weak = weak_from_this()](http::CloseReason) {
    const auto self = weak.lock();
    if (!self) return;
    std::shared_ptr<Turn> turn;
    {
      const std::lock_guard lock(self->mutex_);
      self->closed_ = true;
      self->cost_open_.reset();
      turn = self->turn_;
    }
    if (turn) turn->close();
  });
  list_tools(0);
  return {};
}

Session::~Session() {
  (void)within_memory([&]() -> Result<> {
    for (const Server& server : servers_.all)
      service_->fetchers.mcp.end([client = server.client] { client->end(); });
    return {};
  });
}

// Runs work that waits for the MCP server, on one of this MCP server's threads.
void Session::post(std::size_t server, std::function<void()> work) {
  const bool taken = service_->fetchers.mcp.try_post(
      servers_.all[server].entry,
      [self = shared_from_this(), server, work = std::move(work), posted = now_us()] {
        const int most_ms = self->service_->options.access.mcp.timeout_ms;
        if (self->closed()) return;
        if (now_us() - posted > std::int64_t{1000} * most_ms) return self->fail(self->busy(server));
        const auto done = within_memory([&]() -> Result<> { return work(), Result<>(); });
        if (!done) self->fail(done.error());
      });
  if (!taken) fail(busy(server));
}

Error Session::busy(std::size_t server) const {
  return {ErrorCode::unavailable, "too many requests wait for this MCP server: retry later",
          servers_.all[server].field};
}

// Lists the tools of the MCP server with this index, then those of all MCP servers with a higher index.
void Session::list_tools(std::size_t server) {
  if (server == servers_.all.size()) return run_approved();
  post(server, [this, server] {
    const auto done = list_tools_of(server);
    done ? list_tools(server + 1) : fail(done.error());
  });
}

// If an earlier response contains the MCP server's tool list, that list is used, as in OpenAI's API.
Result<> Session::list_tools_of(std::size_t index) {
  const Server& server = servers_.all[index];
  const auto initialized = server.client->initialize();
  if (!initialized)
    return field_failure(server.field, initialized.error().code, "{}", initialized.error().message);
  const json::array known = items();
  const auto listed = std::ranges::find_if(known, [&](const json::value& item) {
    return item.is_object() && text_at(item.get_object(), "type") == "mcp_list_tools" &&
           text_at(item.get_object(), "server_label") == server.label;
  });
  if (listed != known.end()) {
    servers_.add_functions(index, listed->get_object());
    return {};
  }
  const auto tools = server.client->list_tools();
  if (!tools) return field_failure(server.field, tools.error().code, "{}", tools.error().message);
  json::object item = tools_item(server.label, *tools);
  servers_.add_functions(index, item);
  prelude_.push_back(std::move(item));
  return {};
}

void Session::run_approved() {
  auto calls = answered_calls(items(), input_, servers_);
  if (!calls) return fail(calls.error());
  now_.calls = *std::move(calls);
  run_calls();
}

json::array Session::items() const {
  json::array all = history_.conversation;
  for (const json::array* more : {&input_, counts_.turns == 0 ? &prelude_ : &output_})
    all.insert(all.end(), more->begin(), more->end());
  return all;
}

json::object Session::turn_body() const {
  json::object body = body_;
  for (const std::string_view field : {"previous_response_id", "conversation", "max_tool_calls"})
    body.erase(field);
  body["input"] = items();
  body["store"] = false;
  body["stream"] = true;
  body["tools"] = servers_.functions;
  // tool_choice only applies to the first turn. After the last allowed call, the model must answer without
  // tools.
  const bool last = counts_.turns >= kTurnsMax || counts_.runs >= counts_.runs_max;
  if (counts_.turns > 0) body["tool_choice"] = last ? "none" : "auto";
  // The ids of items and calls are derived from request_id, so later turns must not have the same one.
  if (counts_.turns > 0) body.erase("request_id");
  if (const json::value* choice = body.if_contains("tool_choice");
      choice && choice->is_object() && text_at(choice->get_object(), "type") == "mcp")
    body["tool_choice"] =
        json::object{{"type", "function"},
                     {"name", openai::flat_tool_name(text_at(choice->get_object(), "server_label"),
                                                     text_at(choice->get_object(), "name"))}};
  return body;
}

void Session::start_turn() {
  http::Request request = exchange_->request();
  request.body = exact_json_text(turn_body());
  ++counts_.turns;
  now_ = {};
  const auto self = shared_from_this();
  const auto turn =
      std::make_shared<Turn>(std::move(request), exchange_,
                             TurnEvents{.event = [self](json::object event) { self->take(std::move(event)); },
                                        .ended = [self] { self->turn_ended(); },
                                        .refused = [self](http::Response r) { self->refuse(std::move(r)); }});
  UnreadCosts::Open cost_open;  // keeps the cost's id open until the generation of this turn has opened it
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return turn->close();
    turn_ = turn;
    cost_open = cost_open_;
  }
  if (const auto begun = routes::create_response(service_, turn); !begun)
    turn->respond(openai::error_response(begun.error()));
}

void Session::open(json::object response) {
  response_ = std::move(response);
  json::array tools = body_.at("tools").get_array();
  for (json::value& tool : tools)
    if (tool.is_object() && text_at(tool.get_object(), "type") == "mcp")
      for (const std::string_view secret : {"headers", "authorization"}) tool.get_object().erase(secret);
  response_["tools"] = std::move(tools);
  response_["store"] = store_;
  for (const std::string_view name : {"previous_response_id", "tool_choice", "max_tool_calls"})
    if (const json::value* given = body_.if_contains(name)) response_[name] = *given;
  if (!history_.conversation_id.empty())
    response_["conversation"] = json::object{{"id", history_.conversation_id}};
}

void Session::take(json::object event) {
  const std::string type = text_at(event, "type");
  if (type == "response.created") {
    if (counts_.turns > 1) return;
    open(std::move(event["response"].as_object()));
    return events_.write(type, {{"response", response_}});
  }
  if (type == "response.in_progress") {
    response_["status"] = "in_progress";
    response_["output"] = output_;
    events_.write(type, {{"response", response_}});
    for (json::value& item : std::exchange(prelude_, {})) {
      events_.write_item(item.as_object(), next_index());
      output_.push_back(std::move(item));
      base_ = next_index();
    }
    return;
  }
  if (type == "response.completed" || type == "response.incomplete" || type == "response.failed") {
    now_.end = type;
    now_.response = std::move(event["response"].as_object());
    return;
  }
  if (take_call(type, event)) return;
  if (json::value* index = event.if_contains("output_index"))
    *index = index->to_number<std::int64_t>() + base_;
  if (type == "response.output_item.done") {
    const std::string kind = text_at(event.at("item").as_object(), "type");
    now_.waits_for_client = now_.waits_for_client || kind.ends_with("_call");
    output_.push_back(event.at("item"));
  }
  events_.write(type, std::move(event));
}

// Converts the events of a function call to events of an MCP call. Returns false if the event belongs to
// another item.
bool Session::take_call(std::string_view type, const json::object& event) {
  const json::value* item = event.if_contains("item");
  if (type == "response.output_item.added" && servers_.tools.contains(text_at(item->as_object(), "name"))) {
    begin_call(item->as_object());
    return true;
  }
  if (!now_.call) return false;
  if (type == "response.output_item.done") {
    end_call(text_at(item->as_object(), "arguments"));
    return true;
  }
  constexpr std::string_view kPrefix = "response.function_call_arguments.";
  if (!type.starts_with(kPrefix)) return false;
  if (now_.call->requires_approval) return true;
  json::object fields = event;
  fields["item_id"] = now_.call->item.at("id");
  fields["output_index"] = next_index();
  events_.write(fmt::format("response.mcp_call_arguments.{}", type.substr(kPrefix.size())),
                std::move(fields));
  return true;
}

void Session::begin_call(const json::object& item) {
  const ServerTool& tool = servers_.tools.find(text_at(item, "name"))->second;
  const Server& server = servers_.all[tool.server];
  Call call{.item = {}, .tool = tool, .requires_approval = server.requires_approval(tool.name)};
  call.item = {{"id", new_item_id(call.requires_approval ? "mcpr" : "mcp")},
               {"type", call.requires_approval ? "mcp_approval_request" : "mcp_call"},
               {"server_label", server.label},
               {"name", tool.name},
               {"arguments", ""}};
  if (!call.requires_approval) {
    call.item["status"] = "in_progress";
    call.item["output"] = call.item["error"] = call.item["approval_request_id"] = nullptr;
    events_.write("response.output_item.added", {{"output_index", next_index()}, {"item", call.item}});
    events_.write("response.mcp_call.in_progress",
                  {{"output_index", next_index()}, {"item_id", call.item.at("id")}});
  }
  now_.call = std::move(call);
}

void Session::end_call(const std::string& arguments) {
  Call call = *std::exchange(now_.call, std::nullopt);
  call.item["arguments"] = arguments;
  if (call.requires_approval) {
    events_.write_item(call.item, next_index());
    now_.waits_for_client = true;
  }
  output_.push_back(call.item);
  if (!call.requires_approval) now_.calls.push_back(std::move(call));
}

void Session::turn_ended() {
  {
    const std::lock_guard lock(mutex_);
    turn_.reset();
    if (closed_) return;
  }
  if (now_.end.empty()) return fail({ErrorCode::internal, "the turn ended without a response", {}});
  if (const json::value* usage = now_.response.if_contains("usage"); usage && usage->is_object())
    add_numbers(usage->get_object(), usage_);
  if (now_.calls.empty() || now_.end != "response.completed") return finish();
  run_calls();
}

void Session::run(const ServerTool& tool, json::object& item) {
  boost::system::error_code broken;
  json::value arguments = parse_exact_json(text_at(item, "arguments"), broken);
  ++counts_.runs;
  Result<CallResult> result = CallResult{.text = "the arguments are not a JSON object", .failed = true};
  if (!broken && arguments.is_object())
    result = servers_.all[tool.server].client->call(tool.name, std::move(arguments.get_object()));
  const std::string text = result ? std::move(result->text) : result.error().message;
  if (!result || result->failed) return fail_call(item, text);
  item["status"] = "completed";
  item["output"] = text;
}

// Runs the calls one after another, each on a thread of its MCP server. Then starts the next turn.
void Session::run_calls() {
  while (!now_.calls.empty()) {
    if (closed()) return;
    Call call = std::move(now_.calls.front());
    now_.calls.pop_front();
    const bool refused = call.item.at("status") == "failed";
    if (!refused && counts_.runs < counts_.runs_max)
      return post(call.tool.server, [this, call = std::move(call)]() mutable {
        run(call.tool, call.item);
        add_result(std::move(call));
        run_calls();
      });
    if (!refused)
      fail_call(call.item, fmt::format("the limit max_tool_calls {} is reached", counts_.runs_max));
    add_result(std::move(call));
  }
  base_ = next_index();
  now_.waits_for_client ? finish() : start_turn();
}

// Writes the events of a call that has ended. Before the first turn (approved calls), only adds it to
// prelude_.
void Session::add_result(Call call) {
  if (counts_.turns == 0) return prelude_.push_back(std::move(call.item));
  const auto found = std::ranges::find_if(
      output_, [&](const json::value& item) { return item.at("id") == call.item.at("id"); });
  const auto index = std::distance(output_.begin(), found);
  events_.write(fmt::format("response.mcp_call.{}", text_at(call.item, "status")),
                {{"output_index", index}, {"item_id", call.item.at("id")}});
  events_.write("response.output_item.done", {{"output_index", index}, {"item", call.item}});
  *found = std::move(call.item);
}

void Session::finish() {
  close_cost();
  for (const std::string_view name : {"status", "incomplete_details", "error"})
    if (const json::value* value = now_.response.if_contains(name)) response_[name] = *value;
  // The remaining calls are not run, because the turn ended within a call (max_output_tokens).
  for (Call& call : std::exchange(now_.calls, {}))
    for (std::size_t i = 0; i < output_.size(); ++i)
      if (output_[i].at("id") == call.item.at("id")) {
        output_[i].as_object()["status"] = "incomplete";
        events_.write("response.output_item.done", {{"output_index", i}, {"item", output_[i]}});
      }
  response_["output"] = output_;
  response_["usage"] = usage_;
  const std::string text = exact_json_text(response_);
  if (!history_.conversation_id.empty()) {
    json::array news = input_;
    news.insert(news.end(), output_.begin(), output_.end());
    const auto added = service_->responses->conversations().add(history_.conversation_id, news);
    if (!added) log_warning("conversation {}: {}", history_.conversation_id, added.error().message);
  }
  if (store_) service_->responses->finish(text_at(response_, "id"), text, exact_json_text(items()));
  if (!events_.stream()) return exchange_->respond({.body = text});
  events_.write(now_.end, {{"response", response_}});
  events_.finish();
}

// Answers with an error. If the stream has begun, ends it with the error.
void Session::refuse(http::Response response) {
  close_cost();
  if (!events_.begun()) return exchange_->respond(std::move(response));
  boost::system::error_code broken;
  const json::value body = parse_exact_json(response.body, broken);
  const json::value* error = !broken && body.is_object() ? body.get_object().if_contains("error") : nullptr;
  response_["status"] = "failed";
  response_["error"] = json::object{
      {"code", "server_error"},
      {"message", error && error->is_object() ? text_at(error->get_object(), "message") : response.body}};
  events_.write("response.failed", {{"response", response_}});
  events_.finish();
}

}  // namespace

Result<> respond_with_servers(const std::shared_ptr<Service>& service,
                              const std::shared_ptr<http::Exchange>& exchange, json::object body) {
  openai::Fields fields(body);
  bool stream = false;
  TRY_VOID(fields.boolean("stream", stream));
  return std::make_shared<Session>(service, exchange, std::move(body), stream)->start();
}

}  // namespace octavo::mcp
