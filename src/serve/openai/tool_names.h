// Names of tools' fields in errors, for APIs whose bodies are converted to bodies of chats.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::openai {

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
