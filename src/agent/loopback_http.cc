#include "agent/loopback_http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/clock.h"
#include "base/mutant.h"

namespace belay {
namespace {

// Whether nothing more belongs to it, by what it says of its length.
bool IsWhole(std::string_view bytes);

class Connection {
 public:
  explicit Connection(int64_t timeout_ms)
      : deadline_(clock_.SteadyNanos() + timeout_ms * 1'000'000) {}
  ~Connection() {
    if (socket_ >= 0) close(socket_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Status Open(uint16_t port) {
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_ < 0) return SysError(errno, "connect");
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0)
      return Ok();
    if (errno != EINPROGRESS) return SysError(errno, "connect");
    BELAY_OK(Wait(POLLOUT));
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) return SysError(error, "connect");
    return Ok();
  }

  Status Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) {
        BELAY_OK(Wait(POLLOUT));
        continue;
      }
      if (sent < 0) return SysError(errno, "send");
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return Ok();
  }

  // All until the answer is whole: a server may leave the connection open behind it,
  // whatever it was asked. Of one that does not say how long it is: until it closes.
  Result<std::string> Receive() {
    std::string all;
    char buffer[16 * 1024];
    for (;;) {
      const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) {
        BELAY_OK(Wait(POLLIN));
        continue;
      }
      if (got < 0) return SysError(errno, "receive");
      if (got == 0) return all;
      all.append(buffer, static_cast<size_t>(got));
      if (IsWhole(all)) return all;
      if (all.size() > kLongestAnswer)
        return Error(Errc::kInvalid, "the answer is too long");
    }
  }

 private:
  Status Wait(short events) {
    for (;;) {
      const int64_t left = deadline_ - clock_.SteadyNanos();
      if (left <= 0) return Error(Errc::kBusy, "no answer in time");
      pollfd one = {socket_, events, 0};
      const int ready = poll(
          &one, 1, static_cast<int>(std::min<int64_t>(left / 1'000'000 + 1, 1000)));
      if (ready < 0 && errno != EINTR) return SysError(errno, "poll");
      if (ready > 0) return Ok();
    }
  }

  RealClock clock_;
  const int64_t deadline_;
  int socket_ = -1;
};

bool SameWord(std::string_view a, std::string_view b) {
  const auto low = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [&](char x, char y) { return low(x) == low(y); });
}

std::string_view HeaderValue(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Error NoAnswer() { return {Errc::kInvalid, "what came back is no HTTP answer"}; }

Result<std::string> Unchunked(std::string_view rest) {
  std::string body;
  for (;;) {
    const size_t end = rest.find("\r\n");
    if (end == std::string_view::npos) return NoAnswer();
    size_t size = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + end, size, 16);
    if (read.ec != std::errc() || read.ptr == rest.data()) return NoAnswer();
    rest.remove_prefix(end + 2);
    if (size == 0) return body;
    if (size > rest.size() || rest.substr(size, 2) != "\r\n") return NoAnswer();
    body += rest.substr(0, size);
    rest.remove_prefix(size + 2);
  }
}

// What the head says of the body's length, and the rest.
struct Head {
  int status = 0;
  bool chunked = false;
  std::optional<size_t> length = {};
  std::string_view rest = {};
};

Result<Head> ReadHead(std::string_view bytes) {
  Head out;
  const size_t head_end = bytes.find("\r\n\r\n");
  if (!bytes.starts_with("HTTP/1.") || head_end == std::string_view::npos ||
      bytes.size() < 12)
    return NoAnswer();
  const auto status = std::from_chars(bytes.data() + 9, bytes.data() + 12, out.status);
  if (status.ec != std::errc() || status.ptr != bytes.data() + 12) return NoAnswer();
  std::string_view head = bytes.substr(0, head_end + 2);
  out.rest = bytes.substr(head_end + 4);
  for (head.remove_prefix(head.find("\r\n") + 2); !head.empty();) {
    const size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return NoAnswer();
    const std::string_view value = HeaderValue(line.substr(colon + 1));
    if (SameWord(line.substr(0, colon), "transfer-encoding"))
      out.chunked = SameWord(value, "chunked");
    if (SameWord(line.substr(0, colon), "content-length")) {
      size_t size = 0;
      const auto read =
          std::from_chars(value.data(), value.data() + value.size(), size);
      if (read.ec != std::errc() || read.ptr != value.data() + value.size())
        return NoAnswer();
      out.length = size;
    }
  }
  return out;
}

bool IsWhole(std::string_view bytes) {
  if (BELAY_MUTANT("answers-end-with-the-connection")) return false;
  const Result<Head> head = ReadHead(bytes);
  if (!head.ok()) return false;
  if (head->chunked)
    return head->rest.ends_with("0\r\n\r\n") && Unchunked(head->rest).ok();
  return head->length && *head->length <= head->rest.size();
}

}  // namespace

std::string UrlEncoded(std::string_view text, std::string_view also) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
                       c == '~' || also.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
      continue;
    }
    out += '%';
    out += kHex[static_cast<unsigned char>(c) >> 4];
    out += kHex[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

Result<HttpAnswer> ParseHttpAnswer(std::string_view bytes) {
  BELAY_TRY(const Head head, ReadHead(bytes));
  HttpAnswer answer;
  answer.status = head.status;
  if (head.chunked) {
    BELAY_TRY(answer.body, Unchunked(head.rest));
  } else if (head.length && *head.length > head.rest.size()) {
    return NoAnswer();
  } else {
    answer.body = head.rest.substr(0, head.length.value_or(head.rest.size()));
  }
  return answer;
}

Result<HttpAnswer> PostLoopback(uint16_t port, std::string_view path,
                                std::string_view json, int64_t timeout_ms) {
  Connection connection(timeout_ms);
  BELAY_OK(connection.Open(port));
  std::string request = "POST ";
  request += path;
  request += " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
             "\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
             "Connection: close\r\nContent-Length: " +
             std::to_string(json.size()) + "\r\n\r\n";
  request += json;
  BELAY_OK(connection.Send(request));
  BELAY_TRY(const std::string bytes, connection.Receive());
  return ParseHttpAnswer(bytes);
}

}  // namespace belay
