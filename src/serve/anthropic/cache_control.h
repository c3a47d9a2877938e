// Converts Anthropic's cache_control to the session fields of chats.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"

namespace octavo::anthropic {

// Adds the longest cache_control of the request to the chat. If the request does not name a session, the
// name is a hash of the system prompt and the first message, which all turns of a conversation have. Returns
// an error with the field's name if a cache_control is invalid.
Result<> convert_cache_control(const boost::json::object& body, boost::json::object& chat);

}  // namespace octavo::anthropic
