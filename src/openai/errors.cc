#include "openai/errors.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace octavo::openai {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 400:
      return "BadRequestError";
    case 401:
      return "AuthenticationError";
    case 404:
      return "NotFoundError";
    case 405:
      return "MethodNotAllowedError";
    case 408:
      return "RequestTimeoutError";
    case 413:
    case 431:
      return "RequestTooLargeError";
    case 429:
      return "RateLimitError";
    case 501:
    case 505:
      return "NotImplementedError";
    case 503:
      return "ServiceUnavailableError";
    default:
      return status < 500 ? "BadRequestError" : "InternalServerError";
  }
}

std::string message_of(const Error& error) {
  return error.field.empty() ? error.message : error.field + ": " + error.message;
}

}  // namespace

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
      return 400;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::resource_exhausted:
      return 429;
    case ErrorCode::unavailable:
      return 503;
    case ErrorCode::corrupt:
    case ErrorCode::io:
    case ErrorCode::internal:
      return 500;
  }
  return 500;
}

std::string error_json(int status, std::string_view message, std::string_view param) {
  boost::json::object error{
      {"message", message}, {"type", type_of(status)}, {"param", nullptr}, {"code", status}};
  if (!param.empty()) error["param"] = param;
  boost::json::object body{{"error", std::move(error)}};
  if (status == 404) body["detail"] = "Not Found";  // clients of vLLM look for FastAPI's field
  return boost::json::serialize(body);
}

std::string error_json(const Error& error) {
  return error_json(status_of(error.code), message_of(error), error.field);
}

http::Response error_response(int status, std::string_view message, std::string_view param) {
  http::Response response{.status = status, .body = error_json(status, message, param)};
  if (status == 429 || status == 503) response.headers.add("Retry-After", "1");
  if (status == 401) response.headers.add("WWW-Authenticate", "Bearer");
  return response;
}

http::Response error_response(const Error& error) {
  return error_response(status_of(error.code), message_of(error), error.field);
}

}  // namespace octavo::openai
