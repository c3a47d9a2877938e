// Makes the messages of `octavo chat`.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "app/chat_turn.h"
#include "base/error.h"

namespace octavo {

// images: data URLs, placed before the text.
boost::json::object user_message(std::string_view text, const boost::json::array& images);
// Returns the answer as a message of the next request.
boost::json::object assistant_message(const Turn& turn);
boost::json::object tool_message(const boost::json::value& call, std::string_view result);

// Returns an image as a data URL. Returns an error if the file is missing, too large, or not PNG, JPEG,
// WebP or GIF.
Result<std::string> image_url(const std::string& path);
// Reads a JSON list of tools, as in requests. An element may also be only the function object of a tool.
Result<boost::json::array> read_tools_file(const std::string& path);

}  // namespace octavo
