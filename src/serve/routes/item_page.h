// Lists of items in OpenAI's format, for conversations and responses.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/error.h"
#include "http/message.h"

namespace octavo::routes {

// Returns {"object": "list", "data", "has_more", "first_id", "last_id"}. Each item must have an id.
boost::json::object item_list(boost::json::array data, bool has_more);

// Returns one page of the items, which must be sorted oldest first. The request's query can have `limit` (1
// to 100, default 20), `order` (default desc) and `after` (the id of an item). Returns invalid_argument for
// an invalid query, and not_found if no item has the id `after`.
Result<boost::json::object> item_page(const http::Request& request, boost::json::array items);

}  // namespace octavo::routes
