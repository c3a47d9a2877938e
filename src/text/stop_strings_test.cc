#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace octavo {
namespace {

struct Outcome {
  std::string text;
  std::optional<std::size_t> stop;
  bool operator==(const Outcome&) const = default;
};

Outcome run(StopSplitter splitter, const std::vector<std::string>& pieces) {
  Outcome outcome;
  for (const std::string& piece : pieces) {
    StopSplitter::Step step = splitter.push(piece);
    outcome.text += step.text;
    if (step.stop) outcome.stop = step.stop;
  }
  outcome.text += splitter.finish();
  return outcome;
}

StopSplitter splitter(std::vector<std::string> stops, bool include = false) {
  return StopSplitter::create(std::move(stops), include).value();
}

// The definition: the earliest end counts, then the longest stop string, then the first one in the list.
Outcome reference(const std::vector<std::string>& stops, bool include, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < stops.size(); ++i) {
      const bool here = std::string_view(text).substr(0, end).ends_with(stops[i]);
      if (here && (!best || stops[i].size() > stops[*best].size())) best = i;
    }
    if (best) return {text.substr(0, include ? end : end - stops[*best].size()), best};
  }
  return {text, std::nullopt};
}

TEST(StopSplitter, StopsAcrossPieces) {
  EXPECT_EQ(run(splitter({"<end>"}), {"hello <e", "n", "d> rest"}), (Outcome{"hello ", 0}));
  EXPECT_EQ(run(splitter({"<end>"}, true), {"hello <e", "n", "d> rest"}), (Outcome{"hello <end>", 0}));
}

TEST(StopSplitter, HoldsBackOnlyWhatCouldBeginAStop) {
  StopSplitter one = splitter({"\n\nUser:"});
  EXPECT_EQ(one.push("Hi").text, "Hi");
  EXPECT_EQ(one.push("!\n").text, "!");
  EXPECT_EQ(one.push("\n").text, "");
  EXPECT_EQ(one.push("\nU").text, "\n");
  EXPECT_EQ(one.push("ps").text, "\n\nUps");
  EXPECT_EQ(one.push("\n").text, "");
  EXPECT_EQ(one.finish(), "\n");
}

TEST(StopSplitter, EarliestEndThenLongestThenFirst) {
  EXPECT_EQ(run(splitter({"long stop", "st"}), {"a long stop"}), (Outcome{"a long ", 1}));
  EXPECT_EQ(run(splitter({"op", "stop"}), {"a stop"}), (Outcome{"a ", 1}));
  EXPECT_EQ(run(splitter({"x", "x"}), {"ax"}), (Outcome{"a", 0}));
}

TEST(StopSplitter, DropsWhatComesAfterAStop) {
  StopSplitter one = splitter({"."});
  EXPECT_EQ(one.push("a.b").stop, 0u);
  EXPECT_EQ(one.push("c").text, "");
  EXPECT_EQ(one.finish(), "");
}

TEST(StopSplitter, WithoutStopsLetsAllThrough) {
  EXPECT_EQ(run(splitter({}), {"a", "", "b"}), (Outcome{"ab", std::nullopt}));
}

TEST(StopSplitter, RefusesBadStops) {
  EXPECT_EQ(StopSplitter::create({"a", ""}, false).error().field, "stop");
  EXPECT_FALSE(StopSplitter::create({std::string(kStopStringBytesMax + 1, 'x')}, false).has_value());
  EXPECT_TRUE(StopSplitter::create({std::string(kStopStringBytesMax, 'x')}, false).has_value());
  EXPECT_FALSE(StopSplitter::create(std::vector<std::string>(kStopStringsMax + 1, "x"), false).has_value());
}

// With a small alphabet, stop strings overlap. The division into pieces must not matter.
TEST(StopSplitter, AgreesWithTheDefinitionForAnySplit) {
  std::mt19937 random(7);
  const auto word = [&](std::size_t length_max) {
    std::string text(random() % length_max + 1, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) stop = word(7);
    const bool include = random() % 2 == 0;
    const std::string text = word(40);
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = random() % 5;
      pieces.push_back(text.substr(at, length));
      at += length;
    }
    ASSERT_EQ(run(splitter(stops, include), pieces), reference(stops, include, text));
  }
}

// Only text that may begin a stop string is held back.
TEST(StopSplitter, SendsAsSoonAsItMay) {
  std::mt19937 random(8);
  for (int round = 0; round < 2'000; ++round) {
    const std::vector<std::string> stops = {"abab", "bba", "aab"};
    StopSplitter one = splitter(stops);
    std::string seen, sent;
    for (int i = 0; i < 30; ++i) {
      const char c = static_cast<char>('a' + random() % 3);
      seen += c;
      const StopSplitter::Step step = one.push(std::string_view(&c, 1));
      sent += step.text;
      if (step.stop) break;
      std::size_t hold = 0;
      for (const std::string& stop : stops) {
        for (std::size_t n = 1; n < stop.size(); ++n) {
          if (seen.ends_with(stop.substr(0, n))) hold = std::max(hold, n);
        }
      }
      ASSERT_EQ(sent, seen.substr(0, seen.size() - hold));
    }
  }
}

}  // namespace
}  // namespace octavo
