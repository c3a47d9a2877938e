// References of /v1/responses: items of the input that name an output item of a stored response by its id.
#pragma once

#include <boost/json/array.hpp>
#include <cstddef>

#include "base/error.h"
#include "serve/openai/response_store.h"

namespace octavo::openai {

// Replaces the references from index `first` on with the items. Returns an error on "input[i].id", counted
// from `first`, if no stored response has the item, or if the items are too large together.
Result<> resolve_references(boost::json::array& items, std::size_t first, const ResponseStore& stored);

}  // namespace octavo::openai
