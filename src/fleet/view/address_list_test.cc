#include "fleet/view/address_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(AddressList, WhiteSpaceAndEmptyItemsDoNotCount) {
  EXPECT_THAT(read_address_list("  10.0.0.2:8080 ,  ,\t10.0.0.3:8080  "),
              ElementsAre("10.0.0.2:8080", "10.0.0.3:8080"));
  EXPECT_THAT(read_address_list("10.0.0.1"), ElementsAre("10.0.0.1"));
  EXPECT_THAT(read_address_list(" , ,"), IsEmpty());
  EXPECT_THAT(read_address_list(""), IsEmpty());
}

TEST(AddressList, APortNamesOneEndpointAnAddressAllOfIt) {
  EXPECT_TRUE(address_names("10.0.0.1:8080", "10.0.0.1:8080"));
  EXPECT_FALSE(address_names("10.0.0.1:3000", "10.0.0.1:8080"));
  EXPECT_TRUE(address_names("10.0.0.1", "10.0.0.1:8080"));
  EXPECT_FALSE(address_names("10.0.0.1", "10.0.0.11:8080"));
  for (const char* item : {"[fd00::1]:80", "[fd00::1]", "fd00::1"})
    EXPECT_TRUE(address_names(item, "[fd00::1]:80")) << item;
  EXPECT_FALSE(address_names("[fd00::1]:81", "[fd00::1]:80"));
  EXPECT_FALSE(address_names("", "10.0.0.1:8080"));
}

TEST(AddressNames, AnAddressMeansAllRanksOfItsPort) {
  EXPECT_TRUE(address_names("10.0.0.1:8000", "10.0.0.1:8000@1"));
  EXPECT_TRUE(address_names("10.0.0.1:8000@1", "10.0.0.1:8000@1"));
  EXPECT_TRUE(address_names("10.0.0.1", "10.0.0.1:8000@1"));
  EXPECT_FALSE(address_names("10.0.0.1:8000@2", "10.0.0.1:8000@1"));
  EXPECT_FALSE(address_names("10.0.0.1:80", "10.0.0.1:8000@1"));
}

}  // namespace
}  // namespace octavo::fleet
