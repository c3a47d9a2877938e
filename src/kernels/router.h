// Constants of the expert routers of all backends.
#pragma once

namespace octavo {

constexpr int kMaxExperts = 1024;

// Added to the sum of the selected experts' scores before scores are divided by the sum, because sigmoid
// scores may all be 0.
constexpr float kLeastSum = 1e-20F;

}  // namespace octavo
