#include "openai/ollama_errors.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "openai/errors.h"

namespace octavo::ollama {

std::string error_json(std::string_view message) {
  return boost::json::serialize(boost::json::object{{"error", message}});
}

std::string error_json(const Error& error) {
  return error_json(error.field.empty() ? error.message : error.field + ": " + error.message);
}

http::Response error_response(const Error& error) {
  http::Response response = openai::error_response(error);
  response.body = error_json(error);
  return response;
}

}  // namespace octavo::ollama
