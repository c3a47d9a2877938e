// Radix tree over the bytes of prompts. Each edge lists the endpoints that recently received its text.
// Policies use the tree to send a prompt to the endpoint that received its beginning, as SGLang's router
// does.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Length in bytes of the longest prefix that each endpoint has received. Callers reuse one object to avoid
// allocations.
struct TextMatch {
  std::vector<std::size_t> bytes = {};   // [EndpointId], up to the last endpoint with a prefix
  std::vector<EndpointId> holders = {};  // endpoints with a prefix, in arbitrary order

  std::size_t of(EndpointId id) const { return id < bytes.size() ? bytes[id] : 0; }
};

class TextTree {
 public:
  // `bytes_max` is the maximum memory for the edges of one endpoint. Above the limit, the tree removes the
  // endpoint's oldest text, beginning at the end of the text. An edge of several endpoints counts for each of
  // them.
  explicit TextTree(std::size_t bytes_max);

  void match(std::string_view text, TextMatch& found) const;
  void insert(std::string_view text, EndpointId endpoint);
  void clear(EndpointId endpoint);

  std::size_t bytes(EndpointId endpoint) const { return endpoint < held_.size() ? held_[endpoint].bytes : 0; }
  std::size_t nodes() const { return nodes_.size() - free_nodes_.size(); }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = 0;
  // Marks that an endpoint has received the text from the root to this node. The endpoint then has a Holding
  // at each node on the way.
  struct Holding {
    EndpointId endpoint = kNoEndpoint;
    Index node = kNone;
    Index next = kNone;
    // neighbours in the endpoint's list, which is ordered by age; a parent is always newer than its children
    Index newer = kNone, older = kNone;
  };
  struct Node {
    std::string edge;
    Index parent = kNone;
    Index holdings = kNone;
    std::vector<std::pair<char, Index>> children;  // sorted by the first byte of the edge
  };
  struct Held {
    Index newest = kNone, oldest = kNone;  // ends of the endpoint's list of holdings
    std::size_t bytes = 0;
  };

  static std::size_t cost(std::size_t edge_bytes);
  Index child(const Node& node, char first) const;  // kNone: no such child
  Index add_node(Index parent, std::string_view edge);
  void split(Index index, std::size_t at);
  // returns the endpoint's holding at the node; kNone: the endpoint has none
  Index find(Index node, EndpointId endpoint) const;
  Index add_holding(Index node, EndpointId endpoint);
  // inserts the holding into the endpoint's list, just newer than `older`; kNone: as the oldest
  void link_before(Index holding, Index older);
  void unlink(const Holding& holding);
  void forget_oldest(EndpointId endpoint);

  std::size_t bytes_max_;
  // A deque does not move its elements when it grows, so no insertion is slow. Index 0 of nodes_ is the
  // root. Index 0 of holdings_ is unused.
  std::deque<Node> nodes_ = std::deque<Node>(1);
  std::deque<Holding> holdings_ = std::deque<Holding>(1);
  std::vector<Index> free_nodes_, free_holdings_;
  std::vector<Index> path_;  // nodes from the root to the end of the inserted text, used only during insert()
  std::vector<EndpointId> grown_;  // endpoints whose memory has grown, used only during insert()
  std::vector<Held> held_;    // [EndpointId]
};

}  // namespace octavo::fleet
