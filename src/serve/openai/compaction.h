// /v1/responses/compact: the model writes a summary of a conversation. An item `compaction` with the summary
// replaces everything but the user's messages in later requests.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "openai/request_fields.h"
#include "serve/openai/reply.h"

namespace octavo::openai {

// Returns whether an item of this type has the summary of a conversation.
bool is_compaction(std::string_view type);
// Returns the message that replaces the item in the prompt.
Result<std::string> read_compaction(Fields& item);

// Converts the body of /v1/responses/compact to that of /v1/responses: adds a last user message that requests
// the summary, and removes the fields that this route does not have.
boost::json::object compaction_body(boost::json::object body);

// The reply has the user's messages among `items`, then the item with the summary. items: the items of the
// conversation without the message that requests the summary.
std::unique_ptr<Reply> compaction_reply(ReplyOptions options, boost::json::array items);

}  // namespace octavo::openai
