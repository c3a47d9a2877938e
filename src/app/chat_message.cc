#include "app/chat_message.h"

#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/base64.h"

namespace octavo {

namespace json = boost::json;

namespace {

constexpr std::uintmax_t kFileBytesMax = 32 << 20;

Result<std::string> read_small_file(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return failure(ErrorCode::not_found, "{}: {}", path, error.message());
  if (size > kFileBytesMax) return invalid("", "{}: at most {} bytes, got {}", path, kFileBytesMax, size);
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() != size) return failure(ErrorCode::io, "{}: cannot be read", path);
  return bytes;
}

std::string_view image_type(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG")) return "image/png";
  if (bytes.starts_with("\xff\xd8")) return "image/jpeg";
  if (bytes.starts_with("GIF8")) return "image/gif";
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) return "image/webp";
  return "";
}

}  // namespace

json::object user_message(std::string_view text, const json::array& images) {
  if (images.empty()) return {{"role", "user"}, {"content", text}};
  json::array parts;
  for (const json::value& url : images)
    parts.push_back(json::object{{"type", "image_url"}, {"image_url", {{"url", url}}}});
  parts.push_back(json::object{{"type", "text"}, {"text", text}});
  return {{"role", "user"}, {"content", std::move(parts)}};
}

json::object assistant_message(const Turn& turn) {
  json::object message{{"role", "assistant"}, {"content", turn.text}};
  if (!turn.thoughts.empty()) message["reasoning"] = turn.thoughts;
  if (!turn.calls.empty()) message["tool_calls"] = turn.calls;
  return message;
}

json::object tool_message(const json::value& call, std::string_view result) {
  return {{"role", "tool"}, {"tool_call_id", call.at("id")}, {"content", result}};
}

Result<std::string> image_url(const std::string& path) {
  TRY(const std::string bytes, read_small_file(path));
  const std::string_view type = image_type(bytes);
  if (type.empty()) return invalid("", "{}: must be a PNG, JPEG, WebP or GIF image", path);
  return fmt::format("data:{};base64,{}", type, encode_base64(bytes));
}

Result<json::array> read_tools_file(const std::string& path) {
  TRY(const std::string text, read_small_file(path));
  boost::system::error_code wrong;
  const json::value tree = json::parse(text, wrong);
  if (wrong || !tree.is_array())
    return invalid("--tools", "{}: must be a JSON list of tools{}", path,
                   wrong ? ": " + wrong.message() : "");
  json::array tools;
  for (const json::value& tool : tree.get_array()) {
    if (!tool.is_object()) return invalid("--tools", "{}: each tool must be an object", path);
    const bool whole = tool.get_object().contains("function");
    tools.push_back(whole ? tool : json::value(json::object{{"type", "function"}, {"function", tool}}));
  }
  return tools;
}

}  // namespace octavo
