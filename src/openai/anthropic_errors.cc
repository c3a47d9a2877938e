#include "openai/anthropic_errors.h"

#include <boost/json/serialize.hpp>

#include "openai/errors.h"

namespace octavo::anthropic {
namespace {

std::string_view error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

boost::json::object error_object(int status, std::string_view message) {
  return {{"type", "error"}, {"error", {{"type", error_type(status)}, {"message", message}}}};
}

std::string error_json(int status, std::string_view message) {
  return boost::json::serialize(error_object(status, message));
}

std::string error_json(const Error& error) {
  const std::string message = error.field.empty() ? error.message : error.field + ": " + error.message;
  return error_json(openai::status_of(error.code), message);
}

http::Response error_response(const Error& error) {
  http::Response response = openai::error_response(error);
  response.body = error_json(error);
  return response;
}

}  // namespace octavo::anthropic
