#include "runnel/board/server.h"

#include <httplib.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/board/api.h"
#include "runnel/board/guard.h"
#include "runnel/board/index.h"
#include "runnel/board/port_holder.h"
#include "runnel/board/task_queue.h"

namespace runnel::board {
namespace {

using std::chrono::milliseconds;

constexpr int kUsualPort = 6006;
constexpr int kPortsToTry = 100;
constexpr size_t kMostConnections = 512;
constexpr int kMostWatchers = 400;  // connections that wait for news; the rest stays free for questions

class ConnectionQueue : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override { threads_.add(std::move(task)); }
  void shutdown() override { threads_.finish(); }

 private:
  TaskThreads threads_{kMostConnections};
};

class Http : public httplib::Server {
 public:
  // The library lets five connections wait to be taken; the browser of the sixth would try again a second later.
  void let_many_wait() { ::listen(svr_sock_, static_cast<int>(kMostConnections)); }
};

Request request_of(const httplib::Request& from) {
  Request request{.method = from.method, .path = from.path};
  for (const auto& [name, value] : from.params) request.parameters.emplace(name, value);
  request.host = from.get_header_value("Host");
  request.origin = from.get_header_value("Origin");
  request.fetch_site = from.get_header_value("Sec-Fetch-Site");
  return request;
}

void fill(httplib::Response& to, Response&& from) {
  if (from.status != 200) to.status = from.status;  // else the library says 200, or 206 for a part
  for (const auto& [name, value] : safe_headers()) to.set_header(name, value);
  for (const auto& [name, value] : from.headers) to.set_header(name, value);
  if (!from.stream) {
    to.set_header("Content-Type", from.type);
    to.body = std::move(from.body);
    return;
  }
  to.status = 200;
  to.set_chunked_content_provider(from.type, [body = std::move(from.body), stream = std::move(from.stream)](
                                                 size_t, httplib::DataSink& sink) mutable {
    bool more = true;
    try {
      more = stream(body);
    } catch (const std::exception& e) {
      log_warning("[board] an answer breaks off: {}", e.what());
      return false;  // the browser sees that it is not whole
    }
    if (!body.empty() && !sink.write(body.data(), body.size())) return false;
    body.clear();
    if (!more) sink.done();
    return true;
  });
}

}  // namespace

struct Server::State {
  State(const std::string& logdir, const ServerOptions& options)
      : index(parse_logdirs(logdir), {.follow_links = options.follow_links}),
        api(index),
        guard(options.host, options.allowed_hosts),
        host(options.host) {
    http.new_task_queue = [] { return new ConnectionQueue; };
    http.set_tcp_nodelay(true);
    // Two boards must not share a port, which the library's own options would let them.
    http.set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http.set_payload_max_length(1);
    http.set_keep_alive_timeout(2);
    http.set_keep_alive_max_count(1000);
    http.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      // The library compresses whatever it may, with brotli's slowest setting: seconds for what takes a millisecond.
      const_cast<httplib::Request&>(request).headers.erase("Accept-Encoding");
      answer(request_of(request), request, response);
      return httplib::Server::HandlerResponse::Handled;
    });
    bind(options.port);
  }

  void bind(int asked) {
    const int first = asked == 0 ? kUsualPort : asked;
    const int last = asked == 0 ? kUsualPort + kPortsToTry - 1 : asked;
    for (port = first; port <= last; ++port) {
      errno = 0;
      if (http.bind_to_port(host, port)) {
        http.let_many_wait();
        return;
      }
      if (errno == EADDRNOTAVAIL) {
        throw invalid_argument("[board] cannot listen on {}: this machine has no such address", host);
      }
    }
    const std::string holder = port_holder(first);
    const std::string why = holder.empty() ? std::string() : fmt::format(": {} listens there", holder);
    if (asked != 0) {
      throw make_error(Code::unavailable,
                       "[board] cannot listen on {}:{}{}; give another port, or none to take the next", host, first,
                       why);
    }
    throw make_error(Code::unavailable, "[board] cannot listen on {} with any port from {} to {}{}", host, first, last,
                     why);
  }

  void start() {
    follower = std::thread([this] { follow(); });
    listener = std::thread([this] { http.listen_after_bind(); });
    while (!http.is_running() && !stopped) std::this_thread::sleep_for(milliseconds(1));
  }

  // Looks at the files again and again; the more there are, the longer it waits in between.
  void follow() {
    while (!stopped) {
      const auto begin = std::chrono::steady_clock::now();
      try {
        index.refresh();
      } catch (const std::exception& e) {
        log_warning("[board] {}", e.what());
      }
      const auto took = std::chrono::steady_clock::now() - begin;
      const auto pause = std::clamp<std::chrono::nanoseconds>(4 * took, milliseconds(200), milliseconds(2000));
      std::unique_lock lock(mutex);
      wake.wait_for(lock, pause, [&] { return stopped || look_now; });
      look_now = false;
    }
  }

  void answer(const Request& request, const httplib::Request& from, httplib::Response& response) {
    if (const std::optional<std::string> why = guard.refuses(request)) {
      fill(response, error_response(403, *why));
    } else if (from.ranges.size() > 1) {
      fill(response, error_response(416, "one range at a time"));
    } else if (request.path == "/api/news" && request.method == "GET") {
      tell_news(response);
    } else if (request.path == "/api/refresh" && request.method == "GET") {
      const std::lock_guard lock(mutex);
      look_now = true;
      wake.notify_all();
      fill(response, {.body = "{}\n"});
    } else {
      fill(response, api.answer(request));
    }
  }

  // Server-sent events: the number of the newest generation, whenever there is one.
  void tell_news(httplib::Response& response) {
    if (watchers.fetch_add(1) >= kMostWatchers) {
      --watchers;
      return fill(response, error_response(503, "too many pages are open"));
    }
    for (const auto& [name, value] : safe_headers()) response.set_header(name, value);
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, seen = uint64_t{0}, said = std::chrono::steady_clock::now()](size_t, httplib::DataSink& sink) mutable {
          if (stopped) {
            sink.done();
            return true;
          }
          const uint64_t newest = index.wait(seen, milliseconds(500));
          const auto now = std::chrono::steady_clock::now();
          std::string text;
          if (newest > seen) {
            text = fmt::format("data: {}\n\n", newest);
            seen = newest;
          } else if (now - said > std::chrono::seconds(10)) {
            text = ":\n\n";  // nothing new; finds out whether anybody listens
          }
          if (text.empty()) return sink.is_writable();
          said = now;
          if (!sink.write(text.data(), text.size())) return false;
          // A file that grows all the time is told of some times a second.
          std::unique_lock lock(mutex);
          wake.wait_for(lock, milliseconds(200), [&] { return stopped.load(); });
          return true;
        },
        [this](bool) { --watchers; });
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      if (stopped.exchange(true)) return;
      wake.notify_all();
    }
    index.stop();
    http.stop();
    if (listener.joinable()) listener.join();
    if (follower.joinable()) follower.join();
  }

  Index index;
  Api api;
  Guard guard;
  std::string host;
  int port = 0;
  Http http;
  std::atomic<bool> stopped{false};
  std::atomic<int> watchers{0};
  std::mutex mutex;
  std::condition_variable wake;
  bool look_now = false;  // guarded by mutex
  std::thread follower, listener;
};

Server::Server(const std::string& logdir, const ServerOptions& options, SourceSite where) {
  at_caller(where, [&] {
    state_ = std::make_unique<State>(logdir, options);
    state_->start();
  });
}

Server::~Server() { state_->stop(); }

int Server::port() const { return state_->port; }

std::string Server::url() const {
  const bool local = state_->host == "127.0.0.1" || state_->host == "0.0.0.0" || state_->host == "::";
  const bool v6 = !local && state_->host.find(':') != std::string::npos;
  return fmt::format("http://{}:{}/", local ? "localhost" : v6 ? "[" + state_->host + "]" : state_->host, state_->port);
}

void Server::stop() { state_->stop(); }

}  // namespace runnel::board
