// What the backends' routers have in common.
#pragma once

namespace octavo {

constexpr int kMaxExperts = 1024;

// Added to the sum of the chosen experts' scores, which divides them: sigmoids may all be 0.
constexpr float kLeastSum = 1e-20F;

}  // namespace octavo
