#include "tensor/encoding.h"

namespace octavo {

std::string_view name(Encoding encoding) {
  switch (encoding) {
    case Encoding::plain:
      return "plain";
    case Encoding::q8_0:
      return "Q8_0";
    case Encoding::q4_0:
      return "Q4_0";
    case Encoding::q4_1:
      return "Q4_1";
    case Encoding::q5_0:
      return "Q5_0";
    case Encoding::q5_1:
      return "Q5_1";
    case Encoding::q2_k:
      return "Q2_K";
    case Encoding::q3_k:
      return "Q3_K";
    case Encoding::q4_k:
      return "Q4_K";
    case Encoding::q5_k:
      return "Q5_K";
    case Encoding::q6_k:
      return "Q6_K";
    case Encoding::iq4_nl:
      return "IQ4_NL";
    case Encoding::int4:
      return "int4";
    case Encoding::int8:
      return "int8";
    case Encoding::fp8:
      return "fp8";
    case Encoding::mxfp4:
      return "mxfp4";
  }
  return "?";
}

BlockShape block_shape(Encoding encoding) {
  switch (encoding) {
    case Encoding::plain:
      return {1, 0};
    case Encoding::q8_0:
      return {32, 34};
    case Encoding::q4_0:
    case Encoding::iq4_nl:
      return {32, 18};
    case Encoding::q4_1:
      return {32, 20};
    case Encoding::q5_0:
      return {32, 22};
    case Encoding::q5_1:
      return {32, 24};
    case Encoding::q2_k:
      return {256, 84};
    case Encoding::q3_k:
      return {256, 110};
    case Encoding::q4_k:
      return {256, 144};
    case Encoding::q5_k:
      return {256, 176};
    case Encoding::q6_k:
      return {256, 210};
    case Encoding::int4:
    case Encoding::int8:
    case Encoding::fp8:
    case Encoding::mxfp4:
      return {1, 1};
  }
  return {1, 1};
}

}  // namespace octavo
