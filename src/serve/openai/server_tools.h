// Tools that a hosted API runs itself, such as web_search. This server cannot run them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::openai {

// Such a tool is left out, with a warning in the log, if the request has other tools. An answer without the
// only tool would look like a result of the tool, so this is an error.
class ServerTools {
 public:
  // field: that of the tool's type, such as "tools[0].type".
  void leave_out(std::string_view type, std::string field);

  // others: whether the request has tools that remain. Appends the warnings to `ignored`. Errors:
  // invalid_argument.
  Result<> finish(bool others, std::vector<std::string>& ignored) const;

 private:
  std::vector<std::string> types_;
  std::string first_field_;
};

}  // namespace octavo::openai
