// Stands in for the sample operator, which has a branch of its own; goes when that is merged.
#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"

namespace octavo {

template <>
void check(const SampleArgs&) {}

namespace reference {
void sample(Stream&, const SampleArgs&) { CHECK(false, "the sample operator is not in this build"); }
}  // namespace reference

namespace cpu {
void sample(Stream&, const SampleArgs&) { CHECK(false, "the sample operator is not in this build"); }
}  // namespace cpu

}  // namespace octavo
