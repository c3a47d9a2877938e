// The messages of `octavo chat`.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "app/chat_turn.h"
#include "base/error.h"

namespace octavo {

// A message of the user. images: data URLs, before the text.
boost::json::object user_message(std::string_view text, const boost::json::array& images);
// The answer, as the next request sends it back.
boost::json::object assistant_message(const Turn& turn);
// The result of a call.
boost::json::object tool_message(const boost::json::value& call, std::string_view result);

// Reads an image into a data URL. Errors: not_found; the file is no PNG, JPEG or WebP, or too large.
Result<std::string> image_url(const std::string& path);
// Reads a JSON list of tools, as requests have them. A tool may be a function alone.
Result<boost::json::array> read_tools_file(const std::string& path);

}  // namespace octavo
