// Converts Anthropic's cache_control to the session fields of chats.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "base/error.h"

namespace octavo::anthropic {

// Adds the longest cache_control of the request to the chat. Returns the session's name for requests that
// name none: a hash of the system prompt and the first message, which all turns of a conversation have.
// Returns "" if the request has no cache_control, and an error with the field's name if one is invalid.
Result<std::string> convert_cache_control(const boost::json::object& body, boost::json::object& chat);

}  // namespace octavo::anthropic
