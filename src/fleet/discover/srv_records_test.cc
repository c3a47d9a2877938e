#include "fleet/discover/srv_records.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace octavo::fleet {
namespace {

constexpr int kAddress = 1, kService = 33;  // DNS record types

std::string two(int value) { return {static_cast<char>(value >> 8), static_cast<char>(value)}; }

std::string wire_name(std::string_view name) {
  std::string bytes;
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    bytes += static_cast<char>(dot);
    bytes += name.substr(0, dot);
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return bytes + '\0';
}

std::string service(int priority, int weight, int port, std::string_view target) {
  return two(priority) + two(weight) + two(port) + wire_name(target);
}

// Answers DNS queries over UDP (RFC 1035) with the test's records. All other names do not exist.
class NameServer {
 public:
  NameServer() {
    sockaddr_in bound{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof bound;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&bound), size), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &size), 0);
    address = "127.0.0.1:" + std::to_string(ntohs(bound.sin_port));
  }
  ~NameServer() {
    ::shutdown(fd_, SHUT_RDWR);  // wakes the thread
    if (thread_.joinable()) thread_.join();
    ::close(fd_);
  }
  void add(const std::string& name, int type, const std::string& data) {
    records_[{wire_name(name), type}].push_back(data);
    names_.insert(wire_name(name));
  }
  void add_address(const std::string& name, int last) {
    add(name, kAddress, {10, 0, 0, static_cast<char>(last)});
  }
  void start() {
    thread_ = std::thread([this] {
      std::array<char, 2048> bytes;
      sockaddr_in from;
      socklen_t size = sizeof from;
      for (;;) {
        const ssize_t count =
            ::recvfrom(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
        if (count <= 0) return;
        const std::string reply = answer({bytes.data(), static_cast<std::size_t>(count)});
        ::sendto(fd_, reply.data(), reply.size(), 0, reinterpret_cast<const sockaddr*>(&from), size);
      }
    });
  }

  std::string address;
  bool cuts = false;  // truncate answers within a record

 private:
  std::string answer(const std::string& queried) const {
    const std::string name = queried.substr(12, queried.find('\0', 12) - 11);
    const std::string kind = queried.substr(12 + name.size(), 4);
    const auto found = records_.find({name, kind[1]});
    const int count = found == records_.end() ? 0 : static_cast<int>(found->second.size());
    std::string reply = queried.substr(0, 2) + two(names_.contains(name) ? 0x8400 : 0x8403) + two(1) +
                        two(count) + two(0) + two(0) + name + kind;
    for (int i = 0; i < count; ++i) {
      const std::string& data = found->second[static_cast<std::size_t>(i)];
      reply += two(0xc00c) + kind + two(0) + two(60) + two(static_cast<int>(data.size())) + data;
    }
    return cuts && count > 0 ? reply.substr(0, reply.size() - 3) : reply;
  }

  int fd_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  std::map<std::pair<std::string, int>, std::vector<std::string>> records_;
  std::set<std::string> names_;
  std::thread thread_;
};

class SrvRecords : public testing::Test {
 protected:
  Result<std::vector<Endpoint>> read(const std::string& name = "_http._tcp.replicas.test") {
    server_.start();
    return poll_srv(name, server_.address, 1000)->read();
  }

  NameServer server_;
};

TEST_F(SrvRecords, WorkersHaveTheirPortsPrioritiesAndWeights) {
  server_.add("_http._tcp.replicas.test", kService, service(20, 1, 8002, "spare.test"));
  server_.add("_http._tcp.replicas.test", kService, service(10, 60, 8000, "a.test"));
  server_.add("_http._tcp.replicas.test", kService, service(10, 40, 8001, "b.test"));
  server_.add_address("a.test", 1);
  server_.add_address("b.test", 2);
  server_.add_address("spare.test", 3);
  const auto workers = read();
  ASSERT_TRUE(workers) << workers.error().message;
  ASSERT_EQ(workers->size(), 3U);
  const auto is = [&](std::size_t i, const char* name, int priority, int weight) {
    const Endpoint& worker = (*workers)[i];
    EXPECT_EQ(worker.name, name);
    EXPECT_EQ(worker.url, std::string("http://") + name);
    EXPECT_EQ(worker.priority, priority);
    EXPECT_EQ(worker.weight, weight);
  };
  is(0, "10.0.0.1:8000", 10, 60);
  is(1, "10.0.0.2:8001", 10, 40);
  is(2, "10.0.0.3:8002", 20, 1);
}

TEST_F(SrvRecords, ATargetStandsForAllItsAddressesAndThoseForOneWorkerEach) {
  server_.add("_http._tcp.replicas.test", kService, service(1, 1, 8000, "both.test"));
  server_.add("_http._tcp.replicas.test", kService, service(2, 1, 8000, "again.test"));
  server_.add_address("both.test", 1);
  server_.add_address("both.test", 2);
  server_.add_address("again.test", 2);
  const auto workers = read();
  ASSERT_TRUE(workers) << workers.error().message;
  ASSERT_EQ(workers->size(), 2U);
  for (const Endpoint& worker : *workers) EXPECT_EQ(worker.priority, 1) << "the better one of two counts";
}

TEST_F(SrvRecords, ATargetWithoutAddressesIsPassedOver) {
  server_.add("_http._tcp.replicas.test", kService, service(1, 1, 8000, "gone.test"));
  server_.add("_http._tcp.replicas.test", kService, service(1, 1, 8000, "here.test"));
  server_.add_address("here.test", 1);
  const auto workers = read();
  ASSERT_TRUE(workers) << workers.error().message;
  ASSERT_EQ(workers->size(), 1U);
}

TEST_F(SrvRecords, TheRootAsTargetSaysThatThereIsNoService) {
  server_.add("_http._tcp.replicas.test", kService, service(0, 0, 0, ""));
  const auto workers = read();
  ASSERT_TRUE(workers) << workers.error().message;
  EXPECT_TRUE(workers->empty());
}

// After an error the router keeps its workers. An empty list would remove them.
TEST_F(SrvRecords, ANameThatDoesNotExistIsAnError) { EXPECT_FALSE(read("_http._tcp.nowhere.test")); }

TEST_F(SrvRecords, AnAnswerThatIsCutIsAnError) {
  server_.cuts = true;
  server_.add("_http._tcp.replicas.test", kService, service(1, 1, 8000, "a.test"));
  EXPECT_FALSE(read());
}

TEST(PollSrv, RefusesWhatIsNoNameAndNoServer) {
  for (const char* wrong : {"", "a b", "a/b", "http://a", "a:80"})
    EXPECT_EQ(poll_srv(wrong, "", 1000).error().field, "worker-srv") << wrong;
  EXPECT_EQ(poll_srv(std::string(254, 'a'), "", 1000).error().field, "worker-srv");
  for (const char* wrong : {"name", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:0"})
    EXPECT_EQ(poll_srv("a.test", wrong, 1000).error().field, "worker-srv-server") << wrong;
}

}  // namespace
}  // namespace octavo::fleet
