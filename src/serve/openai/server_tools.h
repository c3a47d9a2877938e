// Tools that a hosted API runs itself, such as web_search. This server cannot run such tools.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::openai {

// If the request has other tools, a hosted tool is left out with a warning in the log. If the hosted tool
// is the only one, the request fails, because an answer without the tool would look like the tool's result.
class ServerTools {
 public:
  // `field` is the name of the tool's type for errors, such as "tools[0].type".
  void leave_out(std::string_view type, std::string field);

  // Appends the warnings to `ignored`. `others` is true if the request has other tools. Returns
  // invalid_argument if a tool was left out and no other tools remain.
  Result<> finish(bool others, std::vector<std::string>& ignored) const;

 private:
  std::vector<std::string> types_;
  std::string first_field_;
};

}  // namespace octavo::openai
