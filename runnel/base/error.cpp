#include "runnel/base/error.h"

#include <algorithm>
#include <cctype>

namespace runnel {
namespace {

// "MatMul" of "[MatMul] ..."; empty of other texts, which may start with a shape: "[2,3] ...".
std::string leading_name(const std::string& message) {
  const auto begins_name = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
  if (message.size() < 2 || message[0] != '[' || !begins_name(message[1])) return "";
  return message.substr(1, message.find(']') - 1);
}

std::shared_ptr<const std::vector<ErrorFrame>> shared_frames(std::vector<ErrorFrame> frames) {
  if (frames.empty()) return nullptr;
  return std::make_shared<const std::vector<ErrorFrame>>(std::move(frames));
}

// The one place where frames become text.
std::string told(const std::string& text, const ErrorFrame& frame) {
  switch (frame.kind) {
    case ErrorFrame::Kind::op: return "[" + frame.name + "] " + text + "; " + frame.detail + frame.where.at();
    case ErrorFrame::Kind::node: return text + "; node '" + frame.name + "'" + frame.where.at();
    case ErrorFrame::Kind::layer:
      return text + "\n  in layer '" + frame.name + "' (" + frame.type + ") called with " + frame.detail;
    case ErrorFrame::Kind::function:
    case ErrorFrame::Kind::file: return text;
    case ErrorFrame::Kind::call: return text + frame.where.at();
  }
  return text;
}

}  // namespace

Error::Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {
  std::string name = leading_name(message);
  if (!name.empty()) frames_ = shared_frames({{.kind = ErrorFrame::Kind::op, .name = std::move(name)}});
}

Error::Error(Code code, const std::string& message, std::vector<ErrorFrame> frames)
    : std::runtime_error(message), code_(code), frames_(shared_frames(std::move(frames))) {}

const std::vector<ErrorFrame>& Error::frames() const {
  static const std::vector<ErrorFrame> none;
  return frames_ ? *frames_ : none;
}

bool Error::has_frame(ErrorFrame::Kind kind) const {
  return std::ranges::any_of(frames(), [&](const ErrorFrame& f) { return f.kind == kind; });
}

Error Error::inside(ErrorFrame frame) const {
  std::string text = told(what(), frame);
  std::vector<ErrorFrame> all = frames();
  all.push_back(std::move(frame));
  return Error(code_, text, std::move(all));
}

Error Error::reworded(const std::string& message) const { return Error(code_, message, frames()); }

const char* code_name(Code code) {
  switch (code) {
    case Code::cancelled: return "CANCELLED";
    case Code::unknown: return "UNKNOWN";
    case Code::invalid_argument: return "INVALID_ARGUMENT";
    case Code::deadline_exceeded: return "DEADLINE_EXCEEDED";
    case Code::not_found: return "NOT_FOUND";
    case Code::already_exists: return "ALREADY_EXISTS";
    case Code::permission_denied: return "PERMISSION_DENIED";
    case Code::resource_exhausted: return "RESOURCE_EXHAUSTED";
    case Code::failed_precondition: return "FAILED_PRECONDITION";
    case Code::aborted: return "ABORTED";
    case Code::out_of_range: return "OUT_OF_RANGE";
    case Code::unimplemented: return "UNIMPLEMENTED";
    case Code::internal: return "INTERNAL";
    case Code::unavailable: return "UNAVAILABLE";
    case Code::data_loss: return "DATA_LOSS";
  }
  return "UNKNOWN";
}

}  // namespace runnel
