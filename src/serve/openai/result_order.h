// The order of tool results in a prompt. Agents send the results of parallel calls in the order in which the
// tools ended. Most chat templates print no ids, so the model assigns results to calls by their position.
// Consecutive results therefore get the order of their calls. They keep their order if a result names no
// call since the last results, or if two calls or two results have the same id.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <vector>

namespace octavo::openai {

// Each function returns the indices of the entries in the order for the prompt.
std::vector<std::size_t> message_order(const boost::json::array& messages);  // of a chat
std::vector<std::size_t> item_order(const boost::json::array& items);        // of /v1/responses
// blocks: content of a message of /v1/messages. before: chat message before it, or null.
std::vector<std::size_t> block_order(const boost::json::object* before, const boost::json::array& blocks);

}  // namespace octavo::openai
