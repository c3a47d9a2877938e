// Lists of items as OpenAI's clients read them, for conversations and responses.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/error.h"
#include "http/message.h"

namespace octavo::routes {

// {"object": "list", "data", "has_more", "first_id", "last_id"}. Each item has an id.
boost::json::object item_list(boost::json::array data, bool has_more);

// One page of the items, which are sorted by age, oldest first. The query has `limit` (1 to 100, default 20),
// `order` (default desc) and `after`, the id of an item. Errors: invalid_argument; not_found (`after`).
Result<boost::json::object> item_page(const http::Request& request, boost::json::array items);

}  // namespace octavo::routes
