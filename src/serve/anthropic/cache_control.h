// Converts Anthropic's cache_control to the field cache_control of chats.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "base/error.h"

namespace octavo::anthropic {

// Adds the request's cache_control with the longest ttl to the chat. Returns a name for the session: a hash
// of the system prompt and the first message, which are the same in all turns of a conversation. Returns ""
// if the request has no cache_control, and an error with the field's name if a cache_control is invalid.
Result<std::string> convert_cache_control(const boost::json::object& body, boost::json::object& chat);

}  // namespace octavo::anthropic
