#include "remote/engine_state.h"

#include "base/check.h"

namespace octavo::remote {
namespace {

struct Transitions {
  using Next = EngineState;
  Next operator()(const state::Loading&, const event::Ready& ready) const {
    return state::Up{.since_us = ready.now_us, .received_us = ready.now_us};
  }
  Next operator()(const state::Loading&, const event::Died& death) const { return next_process(death); }
  Next operator()(const state::Up&, const event::Died& death) const { return next_process(death); }
  Next operator()(const state::Up&, const event::WeightsChosen&) const { return state::Loading{}; }
  Next operator()(const state::Up&, const event::FellAsleep&) const { return state::Asleep{}; }
  Next operator()(const state::Asleep&, const event::Woken&) const { return state::Loading{}; }
  Next operator()(const state::Up&, const event::UnloadWanted&) const { return state::Unloaded{}; }
  Next operator()(const state::Unloaded&, const event::LoadWanted&) const { return state::Loading{}; }
  Next operator()(const state::Broken&, const event::LoadWanted&) const { return state::Loading{}; }
  Next operator()(const auto&, const event::StopRequested&) const { return state::Stopped{}; }
  Next operator()(const auto&, const auto&) const { CHECK(false, "this event is impossible in this state"); }

  static Next next_process(const event::Died& death) {
    if (death.restart) return state::Loading{};
    return state::Broken{};
  }
};

}  // namespace

EngineState after(const EngineState& state, const EngineEvent& event) {
  return std::visit(Transitions{}, state, event);
}

}  // namespace octavo::remote
