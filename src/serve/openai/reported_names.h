// Names of fields in errors, for APIs whose bodies are converted to bodies of chats.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::openai {

// If the result is an error on `field`, replaces the field's name by `name`, which the client used.
template <class T>
Result<T> reported_as(Result<T> result, std::string_view field, std::string_view name) {
  if (!result && result.error().field == field) result.error().field = name;
  return result;
}

// Replaces "response_format" in errors by `name`, for protocols in which the field has another name. Also
// changes errors that the grammar compiler reports later.
template <class Request>
Result<Request> format_reported_as(Result<Request> result, std::string_view name) {
  const auto rename = [&](std::string& field) {
    for (const std::string_view own : {"response_format.json_schema", "response_format"})
      if (field.starts_with(own)) field.replace(0, own.size(), name);
  };
  if (!result) rename(result.error().field);
  if (result && result->generation.output) rename(result->generation.output->field);
  return result;
}

// Removes "function" from names such as "tools[0].function.parameters", for protocols whose tools have no
// such member. schema: the protocol's name of "parameters". Also changes errors that the grammar compiler
// reports later.
template <class Request>
Result<Request> tools_reported_as(Result<Request> result, std::string_view schema = "parameters") {
  const auto rename = [&](std::string& field) {
    constexpr std::string_view kFunction = ".function", kParameters = ".parameters";
    const std::size_t at = field.find(kFunction);
    if (!field.starts_with("tool") || at == std::string::npos) return;
    field.erase(at, kFunction.size());
    if (std::string_view(field).substr(at).starts_with(kParameters))
      field.replace(at + 1, kParameters.size() - 1, schema);
  };
  if (!result) rename(result.error().field);
  if (result && result->generation.output) rename(result->generation.output->field);
  return result;
}

}  // namespace octavo::openai
