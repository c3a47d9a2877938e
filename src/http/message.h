#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo::http {

// Header fields in the order in which they arrived. Comparisons of names ignore case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}

  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  // Replaces all fields with this name.
  void set(std::string name, std::string value);
  // Returns the first value, or nullopt.
  std::optional<std::string_view> find(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  std::size_t size() const { return fields_.size(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct Request {
  std::string method;
  // percent-decoded; begins with '/' and has no dot segments ("*" for OPTIONS *)
  std::string path;
  std::string query;  // part after '?', percent-encoded
  // the path as the client has sent it; an encoded slash in it does not separate segments
  std::string encoded_path = {};
  Headers headers;
  std::string body;
  std::string peer;  // client's address
  // Who made the request: a client, this process for a client (LocalExchange with the client's `peer`), or
  // a background task of this process. Background requests have the lowest priority.
  enum class Origin : std::uint8_t { client, process, background };
  Origin origin = Origin::client;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  // the server adds Content-Type, Content-Length, Date and Connection
  Headers headers{};
  std::string body{};
};

// Example: "Not Found" for 404.
std::string_view reason_phrase(int status);

bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace octavo::http
