// /v1/load_lora_adapter and /v1/unload_lora_adapter, and SageMaker's /adapters, which does the same.
#include <fmt/format.h>

#include <algorithm>

#include "openai/errors.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace {

constexpr std::size_t kNameBytesMax = 256;

Result<std::string> required_text(openai::Fields& fields, std::string_view name, std::size_t bytes_max) {
  std::string text;
  TRY_VOID(fields.text(name, text));
  if (text.empty() || text.size() > bytes_max)
    return invalid(name, "must have 1 to {} bytes, got {}", bytes_max, text.size());
  return text;
}

bool is_model(const Service& service, const std::string& name) {
  return std::ranges::find(service.options.rules.model_names, name) != service.options.rules.model_names.end();
}

AdapterDone answer(const ExchangePtr& exchange, std::string success) {
  return [exchange, success = std::move(success)](const Result<>& done) {
    if (!done) {
      // If the folder is invalid, the error is the client's, because the request names the folder.
      Error error = done.error();
      if (error.code == ErrorCode::corrupt || error.code == ErrorCode::io) error.code = ErrorCode::invalid_argument;
      return exchange->respond(openai::error_response(error));
    }
    exchange->respond({.content_type = "text/plain; charset=utf-8", .body = success});
  };
}

// Names of the fields in the request, and the text of the reply on success.
struct LoadForm {
  std::string_view name_field, path_field;
  fmt::format_string<const std::string&> success;
};

Result<> load(const ServicePtr& service, const ExchangePtr& exchange, const LoadForm& form) {
  TRY(const boost::json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  TRY(const std::string name, required_text(fields, form.name_field, kNameBytesMax));
  TRY(const std::string path, required_text(fields, form.path_field, 4096));
  bool in_place = false;
  TRY_VOID(fields.boolean("load_inplace", in_place));
  if (is_model(*service, name)) return invalid(form.name_field, "`{}` is the name of the base model", name);
  if (!in_place && service->adapters->find(name))
    return invalid(form.name_field,
                   "the LoRA adapter '{}' has already been loaded; set load_inplace to replace it", name);
  const AdapterDone done = [service, name, path, answer = answer(exchange, fmt::format(form.success, name))](
                               const Result<>& loaded) {
    if (loaded) service->offer_adapter({.name = name, .path = path, .parent = {}});
    answer(loaded);
  };
  const bool taken = service->fetchers.pool.try_post([service, name, path, done, field = form.path_field] {
    const Result<std::string> folder = service->options.find_adapter(path);
    if (!folder) return done(field_failure(field, folder.error().code, "{}", folder.error().message));
    service->engine.load_adapter({name, *folder}, done);
  });
  if (!taken) return failure(ErrorCode::unavailable, "too many adapters are loading: retry later");
  return {};
}

Result<> unload(Service& service, const std::string& name, AdapterDone done) {
  if (!service.adapters->remove(name))
    return field_failure("lora_name", ErrorCode::not_found, "the LoRA adapter '{}' does not exist", name);
  service.engine.unload_adapter(name, std::move(done));
  return {};
}

}  // namespace

Result<> load_adapter(const ServicePtr& service, const ExchangePtr& exchange) {
  return load(service, exchange, {"lora_name", "lora_path", "Success: LoRA adapter '{}' added successfully"});
}

Result<> unload_adapter(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const boost::json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  TRY(const std::string name, required_text(fields, "lora_name", kNameBytesMax));
  return unload(*service, name,
                answer(exchange, fmt::format("Success: LoRA adapter '{}' removed successfully", name)));
}

Result<> register_adapter(const ServicePtr& service, const ExchangePtr& exchange) {
  return load(service, exchange, {"name", "src", "Adapter {} registered"});
}

Result<> unregister_adapter(const ServicePtr& service, const ExchangePtr& exchange) {
  const http::Request& request = exchange->request();
  constexpr std::string_view kRoute = "/adapters/";
  if (request.method != "DELETE") {
    http::Response response = openai::error_response(
        405, fmt::format("{} is not allowed for {}NAME: use DELETE", request.method, kRoute));
    response.headers.add("Allow", "DELETE");
    exchange->respond(std::move(response));
    return {};
  }
  const std::string name = request.path.substr(request.path.rfind(kRoute) + kRoute.size());
  return unload(*service, name, answer(exchange, fmt::format("Adapter {} unregistered", name)));
}

}  // namespace octavo::routes
