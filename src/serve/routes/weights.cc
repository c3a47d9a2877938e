// /collective_rpc supports only the methods of vLLM that replace the model's weights.
// /update_weights_from_disk is SGLang's route for the same operation.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "openai/errors.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {
namespace {

namespace json = boost::json;

constexpr std::size_t kPathBytesMax = 4096;

Result<> read_path(openai::Fields& fields, std::string_view name, std::string& path) {
  TRY_VOID(fields.text(name, path));
  if (path.size() > kPathBytesMax)
    return invalid(fields.full_name(name), "must have at most {} bytes, got {}", kPathBytesMax, path.size());
  return {};
}

// Returns the path of the new weights; "": the engine must load the current files again.
Result<std::string> weights_path(openai::Fields& fields) {
  TRY_VOID(fields.refuse("args", "reload_weights accepts only named arguments: use kwargs", json::array()));
  TRY(const json::object* named, fields.object("kwargs"));
  if (named == nullptr) return "";
  openai::Fields kwargs(*named, "kwargs.");
  std::string path;
  TRY_VOID(read_path(kwargs, "weights_path", path));
  TRY_VOID(
      kwargs.refuse("is_checkpoint_format", "weights are always read in the format of the checkpoint", true));
  for (const std::string& name : kwargs.unread())
    return invalid(name, "is not an argument of reload_weights");
  return path;
}

}  // namespace

Result<> collective_rpc(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  std::string method;
  TRY_VOID(fields.text("method", method));
  if (method != "reload_weights")
    return field_failure("method", ErrorCode::unsupported, "must be reload_weights, got {}", method);
  TRY(std::string path, weights_path(fields));
  fields.accept({"timeout"});
  for (const std::string& name : fields.unread()) return invalid(name, "there is no such field");
  const auto done = [service, exchange, path](const Result<>& read) {
    if (read) service->weights.replaced(path);
    exchange->respond(read ? http::Response{.body = R"({"results":[null]})"} : openai::error_response(read.error()));
  };
  service->engine.reload_weights(std::move(path), done);
  return {};
}

Result<> update_weights_from_disk(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  std::string path;
  TRY_VOID(read_path(fields, "model_path", path));
  if (path.empty()) return invalid("model_path", "must be given: the path of a folder or a GGUF file");
  TRY_VOID(fields.refuse("load_format", "weights are always read in the format of the checkpoint", "auto"));
  TRY_VOID(fields.refuse("abort_all_requests",
                         "running requests continue with the new weights; POST /pause?mode=abort ends them",
                         false));
  TRY_VOID(fields.refuse("flush_cache", "KV blocks of the old weights are always removed", true));
  TRY(std::optional<std::string> version, read_weight_version(fields, "weight_version"));
  for (const std::string& name : fields.unread()) return invalid(name, "there is no such field");
  const auto done = [service, exchange, path, version](const Result<>& read) {
    if (read && version) service->weights.set_version(*version);
    if (read) service->weights.replaced(path);
    const std::string message = read ? "the weights are in use" : read.error().message;
    exchange->respond(
        {.status = read ? 200 : 400,
         .body = json::serialize(json::object{{"success", read.has_value()}, {"message", message}})});
  };
  service->engine.reload_weights(std::move(path), done);
  return {};
}

}  // namespace octavo::routes
