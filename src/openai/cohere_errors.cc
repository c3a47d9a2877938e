#include "openai/cohere_errors.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "openai/errors.h"

namespace octavo::cohere {

std::string error_json(std::string_view message) {
  return boost::json::serialize(boost::json::object{{"message", message}});
}

http::Response error_response(const Error& error) {
  http::Response response = openai::error_response(error);
  response.body = error_json(error.field.empty() ? error.message : error.field + ": " + error.message);
  return response;
}

}  // namespace octavo::cohere
