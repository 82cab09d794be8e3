// The server on the loopback interface: pages, news, many and bad connections, ports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <future>
#include <thread>

#include "runnel/board/port_holder.h"
#include "runnel/board/server.h"
#include "runnel/board/task_queue.h"
#include "tests/board/event_files.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::board {
namespace {

using namespace test;
using namespace std::chrono_literals;
using testing::HasSubstr;

const char kGrowing[] = "run/events.out.tfevents.1.host.v2";

struct Served {
  TempDir dir;
  Server server{dir.path()};
  httplib::Client client{"localhost", server.port()};

  // Asks until the answer has the text, for ten seconds.
  bool answers(const std::string& path, const std::string& text) {
    for (int i = 0; i < 200; ++i) {
      const auto response = client.Get(path);
      if (response && response->body.find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(50ms);
    }
    return false;
  }
};

// A connection that is written to by hand.
struct RawConnection {
  explicit RawConnection(int port) : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    open = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  RawConnection(RawConnection&) = delete;
  RawConnection& operator=(RawConnection&) = delete;
  ~RawConnection() { ::close(socket); }
  void send(const std::string& text) const {
    static_cast<void>(::send(socket, text.data(), text.size(), MSG_NOSIGNAL));
  }
  // What comes, with the text at its end; all that came where it does not come within ten seconds.
  std::string read_until(const std::string& text) {
    char buffer[4096];
    while (read.find(text) == std::string::npos) {
      const ssize_t n = ::recv(socket, buffer, sizeof buffer, 0);
      if (n <= 0) return std::exchange(read, "");
      read.append(buffer, static_cast<size_t>(n));
    }
    const size_t end = read.find(text) + text.size();
    std::string got = read.substr(0, end);
    read.erase(0, end);
    return got;
  }
  int socket;
  bool open = false;
  std::string read;  // and not yet asked for
};

std::string request_text(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

TEST(Server, ServesThePage) {
  Served s;
  const auto page = s.client.Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->body, HasSubstr("<title>Runnel board</title>"));
  EXPECT_THAT(page->get_header_value("Content-Security-Policy"), HasSubstr("default-src 'none'; script-src 'self'"));
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_FALSE(page->has_header("Access-Control-Allow-Origin"));
  const auto script = s.client.Get("/main.js");
  ASSERT_TRUE(script);
  EXPECT_EQ(script->get_header_value("Content-Type"), "text/javascript; charset=utf-8");
  for (const char* path :
       {"/../server.cpp", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/main.js/", "/%00", "/tsconfig.json"}) {
    const auto none = s.client.Get(path);
    ASSERT_TRUE(none) << path;
    EXPECT_EQ(none->status, 404) << path;
  }
}

TEST(Server, RefusesOtherSites) {
  Served s;
  for (const httplib::Headers& headers :
       {httplib::Headers{{"Host", "evil.example"}}, httplib::Headers{{"Origin", "http://evil.example"}},
        httplib::Headers{{"Sec-Fetch-Site", "cross-site"}}}) {
    const auto refused = s.client.Get("/api/index", headers);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 403);
    EXPECT_THAT(refused->body, testing::Not(HasSubstr("runs")));
  }
  const auto post = s.client.Post("/api/index", "", "text/plain");
  ASSERT_TRUE(post);
  EXPECT_EQ(post->status, 405);
}

TEST(Server, TellsNewsWithinASecond) {
  Served s;
  ASSERT_TRUE(s.answers("/api/index", "\"loading\":false"));
  RawConnection news(s.server.port());
  news.send(request_text("/api/news"));
  EXPECT_THAT(news.read_until("data: "), HasSubstr("text/event-stream"));
  for (int64_t step = 0; step < 3; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    append_file(s.dir.file(kGrowing), (step == 0 ? version_record() : "") + scalar_record(step, 1));
    const std::string wanted = "\"last_step\":" + std::to_string(step);
    for (bool shown = false; !shown && std::chrono::steady_clock::now() - begin < 10s;) {
      EXPECT_THAT(news.read_until("data: "), HasSubstr("data: "));
      const auto index = s.client.Get("/api/index");
      ASSERT_TRUE(index);
      shown = index->body.find(wanted) != std::string::npos;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);  // a second, and what a busy machine needs
  }
}

TEST(Server, ManyPagesDoNotStarveIt) {
  Served s;
  std::vector<std::unique_ptr<RawConnection>> pages;
  for (int i = 0; i < 200; ++i) {
    pages.push_back(std::make_unique<RawConnection>(s.server.port()));
    ASSERT_TRUE(pages.back()->open) << i;
    pages.back()->send(request_text("/api/news"));
  }
  for (const auto& page : pages) EXPECT_THAT(page->read_until("data: "), HasSubstr("data: "));
  std::vector<std::unique_ptr<RawConnection>> half;  // they never say what they want
  for (int i = 0; i < 50; ++i) {
    half.push_back(std::make_unique<RawConnection>(s.server.port()));
    half.back()->send("GET /api/in");
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = s.client.Get("/api/index");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  const auto stopping = std::chrono::steady_clock::now();
  s.server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - stopping, 15s);
}

TEST(Server, SurvivesBadRequests) {
  Served s;
  std::string ranges = "Range: bytes=0-0";
  while (ranges.size() < 7000) ranges += ",1-2";
  const std::vector<std::string> requests = {
      std::string("\r\n\r\n"),
      std::string("GET\r\n\r\n"),
      std::string("GET / HTTP/9.9\r\n\r\n"),
      std::string(100'000, 'x'),
      "GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
      request_text("/main.js", ranges + "\r\n"),
      request_text("/main.js", "Range: bytes=9-1\r\n"),
      request_text("/main.js", "Range: bytes=99999999999999999999-\r\n"),
      request_text("/main.js", "Content-Length: 99999999999999999999\r\n"),
      request_text("/api/lines?series=%ff%fe&%00=%zz&=&&"),
      std::string("\x16\x03\x01\x02\x00\x01\x00", 7),
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx"};
  for (const std::string& text : requests) {
    RawConnection bad(s.server.port());
    bad.send(text);
    ::shutdown(bad.socket, SHUT_WR);
    const std::string said = bad.read_until("no such text");
    // A range and a length that make no sense may be passed over.
    if (!text.starts_with("GET /main.js")) EXPECT_THAT(said, testing::Not(HasSubstr("200 OK"))) << text.substr(0, 60);
    const auto answer = s.client.Get("/api/index");
    ASSERT_TRUE(answer) << "after " << text.substr(0, 60);
    EXPECT_EQ(answer->status, 200);
  }
}

TEST(Server, TakesTheNextPortUnlessOneIsGiven) {
  TempDir dir;
  Server first(dir.path());
  Server second(dir.path());
  EXPECT_NE(first.port(), second.port());
  EXPECT_THAT(port_holder(first.port()), HasSubstr("process " + std::to_string(getpid())));
  expect_error([&] { Server(dir.path(), {.port = first.port()}); }, Code::unavailable,
               "process " + std::to_string(getpid()));
  const int port = second.port();
  second.stop();
  Server again(dir.path(), {.port = port});
  EXPECT_EQ(again.port(), port);
}

TEST(Server, StopsWhilePagesWait) {
  TempDir dir;
  auto server = std::make_unique<Server>(dir.path());
  RawConnection page(server->port());
  page.send(request_text("/api/news"));
  page.read_until("data: ");
  const auto begin = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST(TaskThreads, RunsTasksThatWaitSideBySide) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> done{0};
  TaskThreads threads(40);
  for (int i = 0; i < 60; ++i) {
    threads.add([&done, gone] {
      gone.wait();
      ++done;
    });
  }
  EXPECT_EQ(threads.threads(), 40u);
  go.set_value();
  threads.finish();
  EXPECT_EQ(done, 60);
}

}  // namespace
}  // namespace runnel::board
