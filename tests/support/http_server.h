#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace runnel::test {

// Serves a few files over HTTP on this machine, one connection at a time, badly where a test asks for it.
class HttpServer {
 public:
  struct File {
    std::string body;
    bool ranges = true;           // understands Range requests
    size_t cut_after = SIZE_MAX;  // the connection breaks after so many bytes of the body, the first time
  };

  explicit HttpServer(std::map<std::string, File> files) : files_(std::move(files)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 8) != 0 ||
        ::getsockname(listener_, generic, &size) != 0) {
      throw std::runtime_error("cannot listen on the loopback interface");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer() {
    ::shutdown(listener_, SHUT_RDWR);  // accept() returns with an error
    thread_.join();
    ::close(listener_);
  }

  std::string url(const std::string& name) const { return "http://127.0.0.1:" + std::to_string(port_) + "/" + name; }
  // "name" or "name from OFFSET" for each request so far.
  std::vector<std::string> requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (true) {
      int connection = ::accept(listener_, nullptr, nullptr);
      if (connection < 0) return;
      std::string request;
      char buffer[2048];
      while (request.find("\r\n\r\n") == std::string::npos) {
        ssize_t n = ::read(connection, buffer, sizeof buffer);
        if (n <= 0) break;
        request.append(buffer, static_cast<size_t>(n));
      }
      send_all(connection, answer(request));
      ::close(connection);
    }
  }

  std::string answer(const std::string& request) {
    std::string name = request.substr(request.find('/') + 1);
    name = name.substr(0, name.find(' '));
    size_t offset = 0;
    size_t range = request.find("Range: bytes=");
    if (range != std::string::npos) offset = std::stoul(request.substr(range + 13));
    std::lock_guard lock(mutex_);
    requests_.push_back(offset > 0 ? name + " from " + std::to_string(offset) : name);
    auto found = files_.find(name);
    if (found == files_.end()) return head("404 Not Found", 0);
    File& file = found->second;
    bool partial = offset > 0 && file.ranges;
    if (partial && offset >= file.body.size()) return head("416 Range Not Satisfiable", 0);
    std::string body = partial ? file.body.substr(offset) : file.body;
    std::string extra;
    if (partial) {
      extra = "Content-Range: bytes " + std::to_string(offset) + "-" + std::to_string(file.body.size() - 1) + "/" +
              std::to_string(file.body.size()) + "\r\n";
    }
    std::string text = head(partial ? "206 Partial Content" : "200 OK", body.size(), extra);
    text += body.substr(0, file.cut_after);
    file.cut_after = SIZE_MAX;
    return text;
  }

  static std::string head(const std::string& status, size_t length, const std::string& extra = "") {
    return "HTTP/1.1 " + status + "\r\nConnection: close\r\nContent-Length: " + std::to_string(length) + "\r\n" +
           extra + "\r\n";
  }

  static void send_all(int connection, const std::string& text) {
    size_t done = 0;
    while (done < text.size()) {
      ssize_t n = ::send(connection, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (n <= 0) return;
      done += static_cast<size_t>(n);
    }
  }

  int listener_;
  int port_ = 0;
  std::mutex mutex_;
  std::map<std::string, File> files_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace runnel::test
