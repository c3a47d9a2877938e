// Sets rotary embeddings: the rotated part of a head, and the angles.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string_view>

#include "base/error.h"
#include "model/gguf/fields.h"

namespace octavo {

// Sets the rotated fraction of a head, and the scaling of angles.
Result<> add_rotation(GgufFields& fields);

// Returns the fraction of a head that `turning` elements are, rounded up a little, because a family rounds
// share * head_dim down.
double share_of_head(const GgufFields& fields, double turning);

// Returns the divisors of the pairs' angles; corrupt, with the tensor's name, if they are invalid.
Result<boost::json::array> angle_divisors(const Gguf& gguf, std::string_view tensor);

// Shortens the divisors to `pairs`. The tensor may have the length for the layers with the most pairs.
void cut_divisors(GgufFields& fields, double pairs);

// Sets the angles of layers with full attention (`whole`), which may be scaled, and those of layers with
// windows.
void set_ropes(GgufFields& fields, boost::json::object whole = {}, boost::json::object sliding = {});

}  // namespace octavo
