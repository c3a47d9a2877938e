// libFuzzer mutator that changes JSON as a tree. Random changes of bytes almost never give valid JSON, so
// without it a fuzzer tests only the JSON parser.
#pragma once

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace octavo::fuzz {

class JsonMutator {
 public:
  // seeds: valid inputs that together contain every field.
  explicit JsonMutator(const std::vector<std::string>& seeds) {
    for (const std::string& seed : seeds) {
      seeds_.push_back(boost::json::parse(seed));
      collect(seeds_.back());
    }
  }

  // If `text` is not JSON, mutates a seed. One of sixteen results is not JSON.
  std::string mutate(std::string_view text, unsigned seed) const {
    std::mt19937 random(seed);
    boost::system::error_code not_json;
    boost::json::value root = boost::json::parse(text, not_json);
    if (not_json || root.is_null()) root = pick(seeds_, random);
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) change(root, random);
    std::string mutated = boost::json::serialize(root);
    if (random() % 16 == 0) {
      const std::size_t size = mutated.size();
      mutated.resize(2 * size + 16);
      mutated.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(mutated.data()), size, mutated.size()));
    }
    return mutated;
  }

  // Implements LLVMFuzzerCustomMutator.
  std::size_t operator()(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) const {
    const std::string mutated = mutate({reinterpret_cast<const char*>(data), size}, seed);
    if (mutated.size() > max_size) return size;
    std::memcpy(data, mutated.data(), mutated.size());
    return mutated.size();
  }

 private:
  using Value = boost::json::value;

  template <class T>
  static const T& pick(const std::vector<T>& from, std::mt19937& random) {
    return from[random() % from.size()];
  }

  void collect(const Value& value) {
    values_.push_back(value);
    if (const auto* object = value.if_object()) {
      for (const auto& [key, member] : *object) {
        keys_.emplace_back(key);
        collect(member);
      }
    } else if (const auto* array = value.if_array()) {
      for (const Value& element : *array) collect(element);
    }
  }

  static void list_nodes(Value& value, std::vector<Value*>& nodes) {
    nodes.push_back(&value);
    if (auto* object = value.if_object()) {
      for (auto& member : *object) list_nodes(member.value(), nodes);
    } else if (auto* array = value.if_array()) {
      for (Value& element : *array) list_nodes(element, nodes);
    }
  }

  static Value edge(std::mt19937& random) {
    static const boost::json::array edges = {nullptr,
                                             true,
                                             false,
                                             -1,
                                             0,
                                             1,
                                             2,
                                             0.5,
                                             -0.0,
                                             1e300,
                                             2147483647,
                                             2147483648,
                                             -2147483649.0,
                                             9007199254740993,
                                             std::numeric_limits<std::int64_t>::min(),
                                             std::numeric_limits<std::uint64_t>::max(),
                                             "",
                                             "a",
                                             "\xE2\x82\xAC",
                                             std::string(300, 'x'),
                                             boost::json::array(),
                                             boost::json::object()};
    return edges[random() % edges.size()];
  }

  void change(Value& root, std::mt19937& random) const {
    std::vector<Value*> nodes;
    list_nodes(root, nodes);
    Value& node = *pick(nodes, random);
    switch (random() % 6) {
      case 0:
        node = edge(random);
        break;
      case 1:
        node = pick(values_, random);
        break;
      case 2:
        node = Value(*pick(nodes, random));
        break;
      case 3:
        node = boost::json::array{node, pick(values_, random)};
        break;
      case 4:
        insert(node, random);
        break;
      default:
        erase(node, random);
        break;
    }
  }

  void insert(Value& node, std::mt19937& random) const {
    const Value added = random() % 2 ? pick(values_, random) : edge(random);
    if (auto* object = node.if_object()) {
      (*object)[pick(keys_, random)] = added;
    } else if (auto* array = node.if_array()) {
      array->insert(array->begin() + random() % (array->size() + 1), added);
    } else if (auto* text = node.if_string()) {
      text->insert(random() % (text->size() + 1), pick(keys_, random));
    } else {
      node = added;
    }
  }

  static void erase(Value& node, std::mt19937& random) {
    if (auto* object = node.if_object(); object != nullptr && !object->empty()) {
      object->erase(object->begin() + random() % object->size());
    } else if (auto* array = node.if_array(); array != nullptr && !array->empty()) {
      array->erase(array->begin() + random() % array->size());
    } else {
      node = nullptr;
    }
  }

  std::vector<Value> seeds_, values_;
  std::vector<std::string> keys_;
};

}  // namespace octavo::fuzz
