// Why a JSON Schema may have no text: a lower bound above its upper bound.
#pragma once

#include <string>
#include <string_view>

namespace octavo::grammar {

// The first such pair of bounds within a JSON text: "'minLength' at #/a/minLength is 5, but 'maxLength' is
// 2".
// "": none.
std::string contradiction(std::string_view json);

}  // namespace octavo::grammar
