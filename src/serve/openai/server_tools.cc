#include "serve/openai/server_tools.h"

#include <utility>

namespace octavo::openai {

void ServerTools::leave_out(std::string_view type, std::string field) {
  if (types_.empty()) first_field_ = std::move(field);
  types_.emplace_back(type);
}

Result<> ServerTools::finish(bool others, std::vector<std::string>& ignored) const {
  if (!types_.empty() && !others)
    return invalid(
        first_field_,
        "{} is not supported: this server cannot run the tool{}, and the request has no other tools",
        types_.front(), types_.front() == "mcp" ? " without --mcp-allow" : "");
  for (const std::string& type : types_) ignored.push_back("tools.type=" + type);
  return {};
}

}  // namespace octavo::openai
