// Routes for weights that a trainer sends while the server runs, as in vLLM: start, tensors, finish.
// Tensors arrive in the safetensors format: in one body, in several parts, or as a file on this host
// (/dev/shm).
#include <boost/json/serialize.hpp>
#include <charconv>
#include <optional>

#include "openai/errors.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {
namespace {

namespace json = boost::json;

constexpr std::size_t kFilePathBytesMax = 4096;

void answer_message(const ExchangePtr& exchange, std::string_view message) {
  exchange->respond({.body = json::serialize(json::object{{"message", message}})});
}

// Reads the body. Trainers send some requests without one.
Result<json::object> body_or_empty(const ExchangePtr& exchange) {
  std::string body = exchange->take_body();
  if (body.empty()) return json::object();
  return openai::parse_body(body);
}

Result<> refuse_unread(const openai::Fields& fields) {
  for (const std::string& name : fields.unread()) return invalid(name, "there is no such field");
  return {};
}

struct Part {
  std::uint64_t first = 0, all = 0;
};

// Reads the value of Content-Range: "bytes FIRST-LAST/ALL".
Result<Part> read_range(std::string_view text, std::uint64_t bytes) {
  constexpr std::string_view kUnit = "bytes ";
  std::uint64_t numbers[3] = {};
  const char* at = text.data() + std::min(kUnit.size(), text.size());
  const char* const end = text.data() + text.size();
  bool fine = text.starts_with(kUnit);
  for (std::size_t i = 0; fine && i < 3; ++i) {
    const auto [next, error] = std::from_chars(at, end, numbers[i]);
    constexpr std::string_view kAfter = "-/";
    fine = error == std::errc{} && (i == 2 ? next == end : next != end && *next == kAfter[i]);
    at = next + 1;
  }
  if (!fine || numbers[1] < numbers[0] || numbers[1] - numbers[0] != bytes - 1 || numbers[1] >= numbers[2])
    return invalid("Content-Range", "must be \"bytes FIRST-LAST/ALL\" for a body of {} bytes, got \"{}\"",
                   bytes, text);
  return Part{numbers[0], numbers[2]};
}

Result<> add_bytes(const ServicePtr& service, const ExchangePtr& exchange) {
  const auto range = exchange->request().headers.find("Content-Range");
  const std::string body = exchange->take_body();
  if (body.empty()) return invalid("", "the body must be a file in the safetensors format, got 0 bytes");
  Part part{0, body.size()};
  if (range) {
    TRY(part, read_range(*range, body.size()));
  }
  TRY(const bool complete, service->weights.change([&](WeightUpdate& update) {
    return update.add_part(std::as_bytes(std::span(body)), part.first, part.all);
  }));
  answer_message(exchange, complete ? "Weights updated" : "Part received");
  return {};
}

// Adds the tensors of a file on this host, given as {"path": "/dev/shm/.."}.
Result<> add_file(Service& service, const json::value& info, const std::string& name) {
  if (!info.is_object()) return invalid(name, "must be an object with a path");
  openai::Fields fields(info.get_object(), name + ".");
  for (const std::string_view field : {"ipc_handles", "ipc_handles_pickled", "dtype_names"})
    TRY_VOID(fields.refuse(
        field, "tensors are taken as safetensors: send their bytes, or the path of a file in /dev/shm"));
  std::string path;
  TRY_VOID(fields.text("path", path));
  if (path.empty())
    return invalid(fields.full_name("path"), "must be the path of a safetensors file on this host");
  if (path.size() > kFilePathBytesMax)
    return invalid(fields.full_name("path"), "must have at most {} bytes, got {}", kFilePathBytesMax,
                   path.size());
  TRY_VOID(refuse_unread(fields));
  return service.weights.change([&](WeightUpdate& update) { return update.add_file(path); });
}

Result<> add_files(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  const json::value* info = fields.any("update_info");
  if (!info) return invalid("update_info", "must be an object with a path, or a list of them");
  TRY_VOID(refuse_unread(fields));
  if (info->is_array()) {
    for (std::size_t i = 0; i < info->get_array().size(); ++i)
      TRY_VOID(add_file(*service, info->get_array()[i], fmt::format("update_info[{}]", i)));
  } else {
    TRY_VOID(add_file(*service, *info, "update_info"));
  }
  answer_message(exchange, "Weights updated");
  return {};
}

bool has_bytes(const http::Request& request) {
  const std::string_view given = request.headers.find("Content-Type").value_or("");
  const std::string_view type = given.substr(0, given.find(';'));
  return http::equal_ignoring_case(type, "application/octet-stream") ||
         http::equal_ignoring_case(type, "application/safetensors");
}

}  // namespace

Result<std::optional<std::string>> read_weight_version(openai::Fields& fields, std::string_view name) {
  constexpr std::size_t kVersionBytesMax = 256;
  if (!fields.any(name)) return std::nullopt;
  std::string version;
  TRY_VOID(fields.text(name, version));
  if (version.empty() || version.size() > kVersionBytesMax)
    return invalid(fields.full_name(name), "must have 1 to {} bytes, got {}", kVersionBytesMax,
                   version.size());
  return version;
}

Result<> init_weight_transfer(const ServicePtr&, const ExchangePtr& exchange) {
  TRY(const json::object body, body_or_empty(exchange));
  openai::Fields fields(body);
  TRY(const json::object* info, fields.object("init_info"));
  TRY_VOID(refuse_unread(fields));
  if (info) {
    openai::Fields named(*info, "init_info.");
    TRY_VOID(
        named.refuse("master_address", "weights are not sent by NCCL: send safetensors to /update_weights"));
    TRY_VOID(named.refuse("packed", "safetensors files are packed by their format", false));
    TRY_VOID(named.refuse("backend", "is the only format of tensors", "safetensors"));
    TRY_VOID(refuse_unread(named));
  }
  answer_message(exchange, "Weight transfer initialized");
  return {};
}

Result<> start_weight_update(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, body_or_empty(exchange));
  TRY_VOID(refuse_unread(openai::Fields(body)));
  TRY_VOID(service->weights.change([](WeightUpdate& update) { return update.start(); }));
  answer_message(exchange, "Weight update started");
  return {};
}

Result<> update_weights(const ServicePtr& service, const ExchangePtr& exchange) {
  const http::Request& request = exchange->request();
  if (request.method != "POST") {
    http::Response response = openai::error_response(
        405, fmt::format("{} is not allowed for /update_weights: use POST", request.method));
    response.headers.add("Allow", "POST");
    exchange->respond(std::move(response));
    return {};
  }
  return has_bytes(request) ? add_bytes(service, exchange) : add_files(service, exchange);
}

Result<> finish_weight_update(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, body_or_empty(exchange));
  openai::Fields fields(body);
  TRY(std::optional<std::string> version, read_weight_version(fields, "weight_version"));
  TRY_VOID(refuse_unread(fields));
  TRY(std::string folder, service->weights.change([](WeightUpdate& update) { return update.finish(); }));
  // The engine calls this function before it delivers the first token of the new weights, so that this token
  // has the new version.
  service->engine.reload_weights(std::move(folder), [service, exchange, version](const Result<>& read) {
    if (read && version) service->weights.set_version(*version);
    service->weights.settle(read.has_value());
    if (!read) return exchange->respond(openai::error_response(read.error()));
    answer_message(exchange, "Weight update finished");
  });
  return {};
}

// If an update is not finished, drops its tensors.
Result<> shutdown_weight_transfer(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY_VOID(service->weights.change([](WeightUpdate& update) -> Result<> {
    if (update.receiving()) update.drop();
    return {};
  }));
  answer_message(exchange, "Weight transfer shut down");
  return {};
}

Result<> update_weight_version(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  TRY(const std::optional<std::string> version, read_weight_version(fields, "new_version"));
  if (!version) return invalid("new_version", "is missing");
  TRY_VOID(fields.refuse("abort_all_requests", "POST /abort_requests ends them", false));
  TRY_VOID(refuse_unread(fields));
  service->weights.set_version(*version);
  exchange->respond({.body = json::serialize(json::object{{"success", true}, {"new_version", *version}})});
  return {};
}

http::Response weight_info(Service& service, std::string_view) {
  return {.body = json::serialize(json::object{{"weight_version", *service.weights.version()}})};
}

}  // namespace octavo::routes
