#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo::http {

// Header fields in order of arrival. Names are case-insensitive.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}

  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  // Replaces all fields with this name.
  void set(std::string name, std::string value);
  // Returns the first value with this name, or nullopt.
  std::optional<std::string_view> find(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  std::size_t size() const { return fields_.size(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct Request {
  std::string method;  // as sent: "GET", "POST", ...
  std::string path;    // percent-decoded; begins with '/' and has no dot segments ("*" for OPTIONS *)
  std::string query;   // part after '?', percent-encoded
  std::string encoded_path = {};  // path as sent; a percent-encoded slash in it does not separate segments
  Headers headers;
  std::string body;
  std::string peer;  // the client's address
  // Source of a request: a client, this process (a LocalExchange with a chosen `peer`), or a background
  // task of this process, whose requests have a lower priority than all others.
  enum class Origin : std::uint8_t { client, process, background };
  Origin origin = Origin::client;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers{};  // without Content-Type, Content-Length, Date and Connection, which the server adds
  std::string body{};
};

// Returns the reason phrase of a status, such as "Not Found" for 404.
std::string_view reason_phrase(int status);

bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace octavo::http
