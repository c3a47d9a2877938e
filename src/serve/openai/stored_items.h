// Items of conversations and stored responses, in the form that clients see.
#pragma once

#include <boost/json/array.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace octavo::openai {

// Adds missing types and ids to items, which must be objects. If the content of a message is a string, it
// becomes a list of parts. new_id: makes an id from a prefix ("msg" or "item") and the item's index.
boost::json::array with_ids(const boost::json::array& items,
                            const std::function<std::string(std::string_view, std::size_t)>& new_id);

}  // namespace octavo::openai
