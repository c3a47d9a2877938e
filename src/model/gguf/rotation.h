// Rotated share of a head, and the angles.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string_view>

#include "base/error.h"
#include "model/gguf/fields.h"

namespace octavo {

// The rotated share of a head, and the scaling of angles.
Result<> add_rotation(GgufFields& fields);

// The share of a head that `turning` elements are. It is rounded up a little, since a family takes the
// whole part of share * head_dim.
double share_of_head(const GgufFields& fields, double turning);

// Divisors of the pairs' angles. Errors: corrupt, naming the tensor.
Result<boost::json::array> angle_divisors(const Gguf& gguf, std::string_view tensor);

// Tensors of divisors may be as long as the longest layers' pairs.
void cut_divisors(GgufFields& fields, double pairs);

// Angles of layers with full attention, which may be scaled, and of those with windows.
void set_ropes(GgufFields& fields, boost::json::object whole = {}, boost::json::object sliding = {});

}  // namespace octavo
