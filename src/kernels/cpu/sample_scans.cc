#include "kernels/cpu/sample_scans.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/clones.h"

namespace octavo::cpu {
namespace {

// Maps floats to integers with the same order, with NaN at both ends, because compilers vectorise the
// maximum of integers, but not of floats.
inline std::int32_t ordered_bits(std::int32_t bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }

constexpr float kNoMass = -100;  // an exponent whose mass is 0

}  // namespace

OCTAVO_CLONES
bool block_maxima(const float* logits, std::int64_t count, float* maxima) {
  std::int32_t nan = 0;
  for (std::int64_t begin = 0; begin < count; begin += kSampleBlock) {
    const std::int64_t end = std::min(begin + kSampleBlock, count);
    std::int32_t greatest = std::numeric_limits<std::int32_t>::min();
    for (std::int64_t i = begin; i < end; ++i) {
      const auto bits = std::bit_cast<std::int32_t>(logits[i]);
      nan |= 0x7f800000 - (bits & 0x7fffffff);  // negative if the logit is NaN
      greatest = std::max(greatest, ordered_bits(bits));
    }
    maxima[begin / kSampleBlock] = std::bit_cast<float>(ordered_bits(greatest));
  }
  return nan >= 0;
}

OCTAVO_CLONES
std::uint64_t block_masses(const float* logits, std::int64_t count, const sampling::Softmax& softmax,
                           float least, std::uint64_t* masses) {
  const sampling::Softmax s = softmax;
  std::uint64_t total = 0;
  for (std::int64_t begin = 0; begin < count; begin += kSampleBlock) {
    const std::int64_t end = std::min(begin + kSampleBlock, count);
    // Two loops instead of one, because compilers do not vectorise a conditional sum.
    float exponents[kSampleBlock];
    for (std::int64_t i = begin; i < end; ++i) {
      const float d = s.exponent(logits[i]);
      exponents[i - begin] = d >= least ? d : kNoMass;
    }
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < end - begin; ++i) sum += sampling::mass(exponents[i]);
    masses[begin / kSampleBlock] = sum;
    total += sum;
  }
  return total;
}

OCTAVO_CLONES
std::int64_t count_greater(const float* logits, std::int64_t count, float bound) {
  std::int64_t total = 0;
  for (std::int64_t begin = 0; begin < count; begin += kSampleBlock) {
    const std::int64_t end = std::min(begin + kSampleBlock, count);
    std::int32_t greater = 0;
    for (std::int64_t i = begin; i < end; ++i) greater += logits[i] > bound ? 1 : 0;
    total += greater;
  }
  return total;
}

OCTAVO_CLONES
void apply_mask(float* logits, std::int64_t count, const std::uint32_t* bits) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t allowed = bits[i >> 5] >> (i & 31) & 1;
    logits[i] = allowed != 0 ? logits[i] : -std::numeric_limits<float>::infinity();
  }
}

}  // namespace octavo::cpu
