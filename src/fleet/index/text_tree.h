// Finds the endpoints that recently received prompts with the same beginning: a radix tree over bytes, with a
// list of endpoints at each edge, as in SGLang's router.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Length of the prefix that each endpoint has received, in bytes. Reuse one object to avoid allocations.
struct TextMatch {
  std::vector<std::size_t> bytes = {};   // [EndpointId], up to the last endpoint with a prefix
  std::vector<EndpointId> holders = {};  // endpoints with a prefix, in arbitrary order

  std::size_t of(EndpointId id) const { return id < bytes.size() ? bytes[id] : 0; }
};

class TextTree {
 public:
  // bytes_max: memory for each endpoint. Above this limit, the oldest text is removed from its end. An edge
  // counts for each endpoint that has received it.
  explicit TextTree(std::size_t bytes_max);

  void match(std::string_view text, TextMatch& found) const;
  void insert(std::string_view text, EndpointId endpoint);
  void clear(EndpointId endpoint);

  // Returns the memory of the endpoint's edges in bytes.
  std::size_t bytes(EndpointId endpoint) const { return endpoint < held_.size() ? held_[endpoint].bytes : 0; }
  std::size_t nodes() const { return nodes_.size() - free_nodes_.size(); }

 private:
  using Place = std::uint32_t;
  static constexpr Place kNone = 0;
  // Marks that an endpoint has received the text up to a node. Such an endpoint also has a holding at the
  // parent.
  struct Holding {
    EndpointId endpoint = kNoEndpoint;
    Place node = kNone;
    Place next = kNone;                  // next holding of the same node
    Place newer = kNone, older = kNone;  // neighbours of the same endpoint; a parent is newer than its
                                         // children
  };
  struct Node {
    std::string edge;
    Place parent = kNone;
    Place holdings = kNone;                        // first holding of the node
    std::vector<std::pair<char, Place>> children;  // sorted by the first byte of their edges
  };
  struct Held {
    Place newest = kNone, oldest = kNone;  // ends of the list of the endpoint's holdings
    std::size_t bytes = 0;
  };

  static std::size_t cost(std::size_t edge_bytes);
  Place child(const Node& node, char first) const;  // kNone: no such child
  Place add_node(Place parent, std::string_view edge);
  void split(Place place, std::size_t at);
  Place find(Place node, EndpointId endpoint) const;  // the endpoint's holding at the node
  Place add_holding(Place node, EndpointId endpoint);
  void link_before(Place holding, Place older);  // older = kNone: links at the end of the endpoint's list
  void unlink(const Holding& holding);
  void forget_oldest(EndpointId endpoint);

  std::size_t bytes_max_;
  // A deque grows without moving its elements, so no insertion is slow. Index 0 is the root, and means "no
  // holding".
  std::deque<Node> nodes_ = std::deque<Node>(1);
  std::deque<Holding> holdings_ = std::deque<Holding>(1);
  std::vector<Place> free_nodes_, free_holdings_;
  std::vector<Place> path_;        // nodes of the current insertion, starting at the root
  std::vector<EndpointId> grown_;  // endpoints whose memory has grown in this insertion
  std::vector<Held> held_;    // [EndpointId]
};

}  // namespace octavo::fleet
