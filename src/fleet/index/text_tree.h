// Which endpoint was lately sent prompts that begin with the same text: a radix tree over bytes that knows
// for each edge who was sent it, as in SGLang's router.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// The length of the prefix that each endpoint was sent. Reuse one object, so that nothing is allocated.
struct TextMatch {
  std::vector<std::size_t> bytes = {};   // [EndpointId], as far as anyone has any
  std::vector<EndpointId> holders = {};  // those with any, in no order

  std::size_t of(EndpointId id) const { return id < bytes.size() ? bytes[id] : 0; }
};

class TextTree {
 public:
  // bytes_max: of text remembered for one endpoint; beyond it the text sent longest ago is forgotten, from
  // its end, until a tenth is free.
  explicit TextTree(std::size_t bytes_max);

  void match(std::string_view text, TextMatch& found) const;
  void insert(std::string_view text, EndpointId endpoint);
  void clear(EndpointId endpoint);

  std::size_t bytes(EndpointId endpoint) const { return endpoint < bytes_.size() ? bytes_[endpoint] : 0; }
  std::size_t nodes() const { return nodes_.size() - free_.size(); }

 private:
  using Place = std::uint32_t;
  struct Holder {
    EndpointId endpoint;
    std::uint64_t used;  // counts insertions
  };
  // Whoever holds a node holds its parent, too.
  struct Node {
    std::string edge;
    Place parent = 0;
    std::vector<Holder> holders;
    std::vector<std::pair<char, Place>> children;  // by the first byte of their edges, ascending
  };

  Place child(const Node& node, char first) const;  // 0: none
  Place add_node(Place parent, std::string_view edge);
  void split(Place place, std::size_t at);
  void hold(Place place, EndpointId endpoint);
  void forget(Place place, EndpointId endpoint);
  void evict(EndpointId endpoint, std::size_t bytes_left);

  std::size_t bytes_max_;
  std::uint64_t uses_ = 0;
  std::vector<Node> nodes_{1};  // [0]: the root, without edge and holders
  std::vector<Place> free_;
  std::vector<std::size_t> bytes_;  // [EndpointId]
};

}  // namespace octavo::fleet
