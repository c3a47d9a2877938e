// Items of conversations and stored responses, as clients see them.
#pragma once

#include <boost/json/array.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace octavo::openai {

// Gives types and ids to items that have none. The content of a message becomes a list of parts. items:
// objects. new_id: makes an id from a prefix ("msg", "item") and the item's index.
boost::json::array with_ids(const boost::json::array& items,
                            const std::function<std::string(std::string_view, std::size_t)>& new_id);

}  // namespace octavo::openai
