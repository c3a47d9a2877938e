// Rotary embeddings: the rotated share of a head, and the angles.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string_view>

#include "base/error.h"
#include "model/gguf/fields.h"

namespace octavo {

// Sets the rotated share of a head, and the scaling of angles.
Result<> add_rotation(GgufFields& fields);

// The share of a head that `turning` elements are. It is rounded up a little, because a family rounds share *
// head_dim down.
double share_of_head(const GgufFields& fields, double turning);

// Divisors of the pairs' angles. Errors: corrupt, with the tensor.
Result<boost::json::array> angle_divisors(const Gguf& gguf, std::string_view tensor);

// Shortens the divisors to `pairs`: the tensor may have the length for the layers with the most pairs.
void cut_divisors(GgufFields& fields, double pairs);

// Sets the angles of layers with full attention, which may be scaled, and those of layers with windows.
void set_ropes(GgufFields& fields, boost::json::object whole = {}, boost::json::object sliding = {});

}  // namespace octavo
