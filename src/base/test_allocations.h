// For tests, which link test_allocations: counts the allocations of the whole program.
#pragma once

namespace octavo {

// How often operator new was called.
long allocations();

}  // namespace octavo
