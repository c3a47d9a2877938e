#include "openai/session_path.h"

namespace octavo::openai {

SessionPath parse_session_path(std::string_view path) {
  path.remove_prefix(path.find(kSessionsPath) + kSessionsPath.size());
  if (!path.empty()) path.remove_prefix(1);
  for (const std::string_view action :
       {"pin", "retain", "demote", "release", "fork", "prefill", "export", "import"})
    if (path.size() > action.size() + 1 && path.ends_with(action) &&
        path[path.size() - action.size() - 1] == '/')
      return {path.substr(0, path.size() - action.size() - 1), action};
  return {path, ""};
}

std::string encoded_session_id(std::string_view id) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_';
    const auto byte = static_cast<unsigned char>(c);
    plain ? out.push_back(c) : void(out.append({'%', kDigits[byte >> 4], kDigits[byte & 15]}));
  }
  return out;
}

}  // namespace octavo::openai
