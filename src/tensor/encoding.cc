#include "tensor/encoding.h"

namespace octavo {
namespace {

struct Row {
  std::string_view name;
  BlockShape shape;
};
// Indexed by Encoding.
constexpr Row kRows[] = {
    {"plain", {1, 0}},      {"Q8_0", {32, 34}},     {"Q4_0", {32, 18}},     {"Q4_1", {32, 20}},
    {"Q5_0", {32, 22}},     {"Q5_1", {32, 24}},     {"Q2_K", {256, 84}},    {"Q3_K", {256, 110}},
    {"Q4_K", {256, 144}},   {"Q5_K", {256, 176}},   {"Q6_K", {256, 210}},   {"IQ4_NL", {32, 18}},
    {"IQ4_XS", {256, 136}}, {"IQ3_S", {256, 110}},  {"IQ3_XXS", {256, 98}}, {"IQ2_S", {256, 82}},
    {"IQ2_XS", {256, 74}},  {"IQ2_XXS", {256, 66}}, {"IQ1_S", {256, 50}},   {"IQ1_M", {256, 56}},
    {"TQ1_0", {256, 54}},   {"TQ2_0", {256, 66}},   {"Q1_0", {128, 18}},    {"int4", {1, 1}},
    {"int8", {1, 1}},       {"fp8", {1, 1}},        {"mxfp4", {1, 1}},
};

const Row& row_of(Encoding encoding) { return kRows[static_cast<int>(encoding)]; }

}  // namespace

std::string_view name(Encoding encoding) { return row_of(encoding).name; }

BlockShape block_shape(Encoding encoding) { return row_of(encoding).shape; }

}  // namespace octavo
