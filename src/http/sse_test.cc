#include "http/sse.h"

#include <gmock/gmock.h>

namespace octavo::http {
namespace {

using ::testing::ElementsAre;

TEST(Sse, ReaderGivesBackWhatWasWrittenForAnySplit) {
  const std::string stream = sse_event(R"({"a":1})") + ": comment\n" + sse_event("") + sse_event("[DONE]");
  for (std::size_t size = 1; size <= stream.size(); ++size) {
    SseReader reader;
    std::vector<std::string> events;
    for (std::size_t at = 0; at < stream.size(); at += size)
      for (std::string& event : reader.push(std::string_view(stream).substr(at, size)))
        events.push_back(event);
    EXPECT_THAT(events, ElementsAre(R"({"a":1})", "", "[DONE]")) << size;
  }
}

TEST(Sse, ReaderTakesCarriageReturnsAndSeveralDataLines) {
  SseReader reader;
  EXPECT_THAT(reader.push("event: x\r\ndata: a\r\ndata:b\r\n\r\nid: 3\n\n"), ElementsAre("a\nb"));
}

}  // namespace
}  // namespace octavo::http
