// /collective_rpc: of what vLLM's route of this name has its workers do, the weights that are read in place of the
// model's.
#include "serve/openai/errors.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {
namespace {

constexpr std::size_t kPathBytesMax = 4096;

// "": those in use are read anew.
Result<std::string> weights_path(openai::Fields& fields) {
  TRY_VOID(fields.refuse("args", "reload_weights has named arguments alone: kwargs", boost::json::array()));
  TRY(const boost::json::object* named, fields.object("kwargs"));
  if (named == nullptr) return "";
  openai::Fields kwargs(*named, "kwargs.");
  std::string path;
  TRY_VOID(kwargs.text("weights_path", path));
  TRY_VOID(kwargs.refuse("is_checkpoint_format", "weights are read in the layout of the checkpoint", true));
  for (const std::string& name : kwargs.unread()) return invalid(name, "there is no such argument");
  if (path.size() > kPathBytesMax)
    return invalid("kwargs.weights_path", "must have at most {} bytes, got {}", kPathBytesMax, path.size());
  return path;
}

}  // namespace

Result<> collective_rpc(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const boost::json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  std::string method;
  TRY_VOID(fields.text("method", method));
  if (method != "reload_weights")
    return field_failure("method", ErrorCode::unsupported, "must be reload_weights, got {}", method);
  TRY(std::string path, weights_path(fields));
  fields.accept({"timeout"});
  for (const std::string& name : fields.unread()) return invalid(name, "there is no such field");
  service->engine.reload_weights(std::move(path), [exchange](const Result<>& read) {
    exchange->respond(read ? http::Response{.body = R"({"results":[null]})"} : openai::error_response(read.error()));
  });
  return {};
}

}  // namespace octavo::routes
