// Which endpoints recently received prompts with the same beginning: a radix tree over bytes whose edges list
// these endpoints, as in SGLang's router.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Length of the prefix that each endpoint received. Reuse one object to avoid allocations.
struct TextMatch {
  std::vector<std::size_t> bytes = {};   // [EndpointId], as far as anyone has any
  std::vector<EndpointId> holders = {};  // those with any, in no order

  std::size_t of(EndpointId id) const { return id < bytes.size() ? bytes[id] : 0; }
};

class TextTree {
 public:
  // bytes_max: memory per endpoint; beyond it, the oldest text is removed, from its end. An edge of several
  // endpoints counts for each.
  explicit TextTree(std::size_t bytes_max);

  void match(std::string_view text, TextMatch& found) const;
  void insert(std::string_view text, EndpointId endpoint);
  void clear(EndpointId endpoint);

  // Memory that the endpoint's edges take.
  std::size_t bytes(EndpointId endpoint) const { return endpoint < held_.size() ? held_[endpoint].bytes : 0; }
  std::size_t nodes() const { return nodes_.size() - free_nodes_.size(); }

 private:
  using Place = std::uint32_t;
  static constexpr Place kNone = 0;
  // An endpoint received the text down to a node. An endpoint with a node also has its parent.
  struct Holding {
    EndpointId endpoint = kNoEndpoint;
    Place node = kNone;
    Place next = kNone;                    // of the same node
    Place newer = kNone, older = kNone;    // of the same endpoint; a parent is newer than its children
  };
  struct Node {
    std::string edge;
    Place parent = kNone;
    Place holdings = kNone;                        // the first of a list
    std::vector<std::pair<char, Place>> children;  // by the first byte of their edges, ascending
  };
  struct Held {
    Place newest = kNone, oldest = kNone;  // of the endpoint's holdings
    std::size_t bytes = 0;
  };

  static std::size_t cost(std::size_t edge_bytes);
  Place child(const Node& node, char first) const;  // kNone: no node
  Place add_node(Place parent, std::string_view edge);
  void split(Place place, std::size_t at);
  Place find(Place node, EndpointId endpoint) const;  // a holding
  Place add_holding(Place node, EndpointId endpoint);
  void link_before(Place holding, Place older);  // kNone: at the end of its endpoint's list
  void unlink(const Holding& holding);
  void forget_oldest(EndpointId endpoint);

  std::size_t bytes_max_;
  // Deques grow without moving what they hold, so that no insertion pays for all. [0] is the root, and no holding.
  std::deque<Node> nodes_ = std::deque<Node>(1);
  std::deque<Holding> holdings_ = std::deque<Holding>(1);
  std::vector<Place> free_nodes_, free_holdings_;
  std::vector<Place> path_;   // of the insertion at hand, from the root on
  std::vector<EndpointId> grown_;  // by it, with those whose edges it has split
  std::vector<Held> held_;    // [EndpointId]
};

}  // namespace octavo::fleet
