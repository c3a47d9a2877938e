// Translates the keys of rotary embeddings.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string_view>

#include "base/error.h"
#include "model/gguf/fields.h"

namespace octavo {

// Sets the rotated fraction of a head, and the scaling of frequencies.
Result<> add_rotation(GgufFields& fields);

// Returns rotary / head_dim, rounded up a little, because a family rounds fraction * head_dim down.
double share_of_head(const GgufFields& fields, double rotary);

// Returns the divisors of the pairs' frequencies. Errors: corrupt if they are invalid; the message names the
// tensor.
Result<boost::json::array> angle_divisors(const Gguf& gguf, std::string_view tensor);

// Shortens the divisors to `pairs`. The tensor may be longer, if layers of another type have more pairs.
void cut_divisors(GgufFields& fields, double pairs);

// Sets the RoPE of layers with full attention (`whole`), which may be scaled, and of layers with sliding
// windows.
void set_ropes(GgufFields& fields, boost::json::object whole = {}, boost::json::object sliding = {});

}  // namespace octavo
