// Handles hosted tools, which an API's servers run themselves, such as web_search. Octavo cannot run them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::openai {

// If the request also has tools that are not hosted, hosted tools are left out with a warning in the log. If
// it has only hosted tools, the request fails, because the answer would look as if the tools had been used.
class ServerTools {
 public:
  // field: name of the tool's type for errors, such as "tools[0].type".
  void leave_out(std::string_view type, std::string field);

  // Appends the warnings to `ignored`. others: whether the request has tools that are not hosted. Returns
  // invalid_argument if a tool was left out and `others` is false.
  Result<> finish(bool others, std::vector<std::string>& ignored) const;

 private:
  std::vector<std::string> types_;
  std::string first_field_;
};

}  // namespace octavo::openai
