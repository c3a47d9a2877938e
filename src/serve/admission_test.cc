#include "serve/admission.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

Price answers(int count) { return {.answers = count, .bytes = 0}; }

TEST(Admission, AClientHoldsNoMoreThanItsShare) {
  Admission admission({.answers = 10, .bytes = 1000}, {.answers = 5, .bytes = 500});
  auto greedy = admission.admit("a", answers(5));
  ASSERT_TRUE(greedy.has_value());
  EXPECT_EQ(admission.admit("a", answers(1)).error().code, ErrorCode::resource_exhausted);
  auto other = admission.admit("b", answers(5));
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(admission.admit("c", answers(1)).error().code, ErrorCode::resource_exhausted);
  *greedy = {};
  EXPECT_TRUE(admission.admit("c", answers(5)).has_value());
}

TEST(Admission, WhatCanNeverFitIsTheRequestsFault) {
  Admission admission({.answers = 10, .bytes = 1000}, {.answers = 5, .bytes = 500});
  for (const auto& refused :
       {admission.possible(answers(6)), admission.possible({.answers = 1, .bytes = 501})})
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(admission.admit("a", answers(6)).error().field, "n");
  EXPECT_TRUE(admission.possible({.answers = 5, .bytes = 500}).has_value());
}

TEST(Admission, SaysWhenToTryAgainByThePaceOfEnds) {
  std::int64_t now = 1'000'000;
  Admission admission({.answers = 10, .bytes = 1000}, {.answers = 10, .bytes = 1000}, {},
                      [&] { return now; });
  EXPECT_EQ(admission.retry_after_s(answers(10)), 1);
  for (int i = 0; i < 3; ++i) {
    auto ticket = admission.admit("a", answers(1)).value();
    EXPECT_EQ(admission.tickets(), 1);
    now += 150'000;
  }
  EXPECT_EQ(admission.retry_after_s(answers(10)), 2) << "0.15 s an answer";
  EXPECT_EQ(admission.retry_after_s(answers(1)), 1);
  EXPECT_EQ(admission.retry_after_s(answers(1'000'000)), 60);
}

TEST(Admission, EverythingComesBack) {
  Admission admission({.answers = 10, .bytes = 1000}, {.answers = 5, .bytes = 500});
  {
    auto ticket = admission.admit("a", {.answers = 3, .bytes = 100}).value();
    EXPECT_TRUE(ticket.grow(400));
    EXPECT_FALSE(ticket.grow(1));
    ticket.give_back_answer();
    EXPECT_EQ(admission.used().answers, 2);
    EXPECT_EQ(admission.used().bytes, 500);
    const Admission::Ticket moved = std::move(ticket);
  }
  EXPECT_EQ(admission.used().answers, 0);
  EXPECT_EQ(admission.used().bytes, 0);
}

TEST(Admission, SeveralModelsShareTheirBytes) {
  const auto bytes = std::make_shared<http::BodyBudget>(1000);
  const Price all{.answers = 10, .bytes = 1000};
  Admission first(all, all, bytes), second(all, all, bytes);
  {
    auto ticket = first.admit("a", {.answers = 1, .bytes = 600}).value();
    const auto refused = second.admit("a", {.answers = 1, .bytes = 401});
    EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
    auto other = second.admit("a", {.answers = 1, .bytes = 300}).value();
    EXPECT_FALSE(other.grow(101));
    EXPECT_TRUE(other.grow(100));
  }
  EXPECT_EQ(bytes->used(), 0U);
  EXPECT_TRUE(second.admit("a", {.answers = 1, .bytes = 1000}).has_value());
}

}  // namespace
}  // namespace octavo
