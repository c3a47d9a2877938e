#include "http/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::http {
namespace {

using testing::HasSubstr;

constexpr std::string_view kType = "multipart/form-data; boundary=XX";

std::string error(std::string_view type, std::string_view body) {
  const auto form = parse_form(type, body);
  return form ? "" : form.error().message;
}

TEST(Form, PartsAreRead) {
  const std::string body =
      "preamble\r\n--XX\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n"
      "--XX \r\ncontent-disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".wav\"\r\n"
      "Content-Type: audio/wav\r\n\r\n\r\n--X\r\nX--\r\n--XX\r\nContent-Disposition: form-data; "
      "name=empty\r\n\r\n\r\n--XX--\r\nrest";
  const auto form = parse_form(kType, body);
  ASSERT_TRUE(form) << form.error().message;
  ASSERT_EQ(form->size(), 3U);
  EXPECT_EQ((*form)[0].name, "model");
  EXPECT_EQ((*form)[0].data, "whisper");
  EXPECT_FALSE((*form)[0].filename);
  EXPECT_EQ((*form)[1].filename, "a \"b\".wav");
  EXPECT_EQ((*form)[1].data, "\r\n--X\r\nX--");
  EXPECT_EQ((*form)[2].name, "empty");
  EXPECT_EQ((*form)[2].data, "");
}

TEST(Form, NoPartsAreNoError) {
  EXPECT_TRUE(parse_form("Multipart/Form-Data; charset=utf-8; boundary=\"XX\"", "--XX--")->empty());
}

TEST(Form, WhatIsNoneIsRefused) {
  EXPECT_THAT(error("application/json", "{}"), HasSubstr("must be multipart/form-data"));
  EXPECT_THAT(error("multipart/form-data", "--XX--"), HasSubstr("needs a boundary"));
  EXPECT_THAT(error("multipart/form-data; boundary=" + std::string(71, 'a'), ""), HasSubstr("needs a boundary"));
  EXPECT_THAT(error(kType, ""), HasSubstr("does not contain the boundary"));
  EXPECT_THAT(error(kType, "--XX"), HasSubstr("not on a separate line"));
  EXPECT_THAT(error(kType, "--XXX\r\n"), HasSubstr("not on a separate line"));
  EXPECT_THAT(error(kType, "--XX\r\nContent-Disposition: form-data; name=a\r\n"), HasSubstr("does not end"));
  EXPECT_THAT(error(kType, "--XX\r\n\r\ndata\r\n--XX--"), HasSubstr("no name"));
  EXPECT_THAT(error(kType, "--XX\r\nContent-Disposition: form-data; filename=\"x\"\r\n\r\n\r\n--XX--"),
              HasSubstr("no name"));
  EXPECT_THAT(error(kType, "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\ndata"),
              HasSubstr("ends early"));
  std::string many;
  for (int i = 0; i < 129; ++i) many += "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n";
  EXPECT_THAT(error(kType, many + "--XX--"), HasSubstr("more than 128 parts"));
}

}  // namespace
}  // namespace octavo::http
