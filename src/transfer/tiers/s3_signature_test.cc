// Checks the signatures of the examples in AWS's documentation of Signature Version 4 for S3.
#include "transfer/tiers/s3_signature.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

constexpr std::time_t kTime = 1'369'353'600;  // 2013-05-24
const StoreKeys kKeys{.access = "AKIAIOSFODNN7EXAMPLE",
                      .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                      .session = "",
                      .region = "us-east-1"};

std::string signature_of(std::string_view query, const StoreKeys& keys = kKeys) {
  const http::Headers headers = s3_headers(
      {.method = "GET", .host = "examplebucket.s3.amazonaws.com", .path = "/", .query = query, .body = {}},
      keys, kTime);
  const std::string all(headers.find("Authorization").value());
  return all.substr(all.rfind('=') + 1);
}

TEST(S3Signature, IsThatOfTheExamples) {
  EXPECT_EQ(signature_of("lifecycle="), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(signature_of("max-keys=2&prefix=J"),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(S3Signature, CoversWhatIsAsked) {
  StoreKeys session = kKeys;
  session.session = "token";
  EXPECT_NE(signature_of("lifecycle=", session), signature_of("lifecycle="));
  const auto headers =
      s3_headers({.method = "GET", .host = "h", .path = "/", .query = {}, .body = {}}, session, kTime);
  EXPECT_EQ(headers.find("x-amz-security-token"), "token");
  EXPECT_EQ(headers.find("x-amz-date"), "20130524T000000Z");
  EXPECT_EQ(s3_headers({}, {}, kTime).size(), 0u) << "nobody asks";
}

}  // namespace
}  // namespace octavo
