#include "runnel/board/guard.h"

#include <arpa/inet.h>

#include <algorithm>

#include "runnel/base/format.h"

namespace runnel::board {
namespace {

std::string lower_ascii(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// "name", "name:6006", "[::1]:6006": the name alone.
std::string without_port(const std::string& host) {
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    return end == std::string::npos ? host : host.substr(1, end - 1);
  }
  return host.substr(0, host.find(':'));
}

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && is_address(host));
}

bool is_any(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

}  // namespace

Guard::Guard(std::string bound, std::vector<std::string> names) : bound_(lower_ascii(std::move(bound))) {
  for (std::string& name : names) names_.push_back(lower_ascii(std::move(name)));
}

bool Guard::known(const std::string& host) const {
  if (host == bound_ || std::ranges::find(names_, host) != names_.end()) return true;
  if (is_loopback(host)) return is_loopback(bound_) || is_any(bound_);
  return is_any(bound_) && is_address(host);
}

std::optional<std::string> Guard::refuses(const Request& request) const {
  const std::string host = without_port(lower_ascii(request.host));
  if (!known(host)) {
    return fmt::format(
        "the board does not answer under the name '{}': open it under the address it printed, or start it with "
        "--allow-host NAME",
        host.substr(0, 100));
  }
  if (!request.origin.empty()) {
    const std::string origin = lower_ascii(request.origin);
    const std::string own = lower_ascii(request.host);
    if (origin != "http://" + own && origin != "https://" + own) return "a page of another site asks";
  }
  // A link of another site may open the page itself, but nothing of another site may load what it shows.
  const bool own_page =
      request.fetch_site.empty() || request.fetch_site == "same-origin" || request.fetch_site == "none";
  if (!own_page && request.path != "/") return "a page of another site asks";
  return std::nullopt;
}

const std::vector<std::pair<std::string, std::string>>& safe_headers() {
  static const auto* const headers = new std::vector<std::pair<std::string, std::string>>{
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
       "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cache-Control", "no-store"},
  };
  return *headers;
}

}  // namespace runnel::board
