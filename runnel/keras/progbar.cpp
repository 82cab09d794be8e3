#include "runnel/keras/progbar.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "runnel/base/format.h"

namespace runnel::keras::utils {
namespace {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void write_to_stdout(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// " 2s/step", " 12ms/step", " 850us/step"
std::string duration_text(double seconds, const std::string& unit) {
  if (seconds >= 1 || seconds == 0) return fmt::format(" {:.0f}s/{}", seconds, unit);
  if (seconds >= 1e-3) return fmt::format(" {:.0f}ms/{}", seconds * 1e3, unit);
  return fmt::format(" {:.0f}us/{}", seconds * 1e6, unit);
}

std::string eta_text(double seconds) {
  const auto s = static_cast<int64_t>(seconds);
  if (seconds > 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s % 3600 / 60, s % 60);
  if (seconds > 60) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}s", s);
}

std::string metric_text(double value) {
  if (std::isnan(value)) return "nan";  // never "-nan"
  return std::abs(value) > 1e-3 ? fmt::format("{:.4f}", value) : fmt::format("{:.4e}", value);
}

std::string count_text(int64_t current, int64_t target) {
  const size_t digits = std::to_string(target).size();
  return fmt::format("{:{}}/{}", current, digits, target);
}

}  // namespace

Progbar::Progbar(std::optional<int64_t> target, ProgbarOptions options)
    : target_(target), options_(std::move(options)), last_update_(-std::numeric_limits<double>::infinity()) {
  if (target_ && *target_ <= 0) throw invalid_argument("[Progbar] the target is {}, it must be positive", *target_);
  if (!options_.write) options_.write = write_to_stdout;
  if (!options_.clock) options_.clock = monotonic_seconds;
  if (!options_.terminal) options_.terminal = ::isatty(STDOUT_FILENO) == 1;
  start_ = options_.clock();
}

void Progbar::update(int64_t current, const Values& values, std::optional<bool> finalize) {
  const bool last = finalize.value_or(target_ && current >= *target_);
  record(current, values);
  const double now = options_.clock();
  if (options_.verbose == 1) {
    if (!last && (now - last_update_ < options_.interval || !*options_.terminal)) {
      step_duration(current, now);  // notes when the first step ended
      return;
    }
    draw_bar(current, now, last);
  } else if (options_.verbose == 2 && last) {
    write_line(current, now);
  }
  last_update_ = now;
}

void Progbar::record(int64_t current, const Values& values) {
  for (const auto& [name, value] : values) {
    if (!sums_.contains(name)) order_.push_back(name);
    Sum& sum = sums_[name];
    const auto& as_given = options_.stateful_metrics;
    if (!options_.averages || std::find(as_given.begin(), as_given.end(), name) != as_given.end()) {
      sum = {value, 1};
    } else {
      // The last update of an epoch without a target repeats its step, which then counts as one.
      const auto steps = static_cast<double>(std::max<int64_t>(current - seen_, 1));
      sum.total += value * steps;
      sum.count += steps;
    }
  }
  seen_ = current;
}

void Progbar::draw_bar(int64_t current, double now, bool finalize) {
  std::string line;
  if (target_) {
    const double progress = static_cast<double>(current) / static_cast<double>(*target_);
    const int filled = std::clamp(static_cast<int>(options_.width * progress), 0, options_.width);
    line = count_text(current, *target_) + " [";
    if (filled > 0) line += std::string(static_cast<size_t>(filled - 1), '=') + (current < *target_ ? '>' : '=');
    line += std::string(static_cast<size_t>(options_.width - filled), '.') + "]";
  } else {
    line = fmt::format("{:7}/Unknown", current);
  }
  const double per_step = step_duration(current, now);
  if (!target_ || finalize) {
    line += fmt::format(" - {:.0f}s{}", now - start_, duration_text(per_step, options_.unit_name));
  } else {
    line += " - ETA: " + eta_text(per_step * static_cast<double>(*target_ - current));
  }
  line += metrics();
  const size_t width = line.size();
  if (*options_.terminal) {
    if (drawn_ > width) line.append(drawn_ - width, ' ');  // covers what is left of a longer line
    line.insert(0, 1, '\r');
    drawn_ = width;
  }
  if (finalize) line += '\n';
  options_.write(line);
}

void Progbar::write_line(int64_t current, double now) {
  const double seconds = now - start_;
  const int64_t target = target_.value_or(current);
  std::string line = fmt::format("{} - {:.0f}s{}", count_text(current, target), seconds, metrics());
  line += " -" + duration_text(seconds, "epoch");
  line += " -" + duration_text(seconds / static_cast<double>(std::max<int64_t>(target, 1)), options_.unit_name);
  options_.write(line + '\n');
}

// Without the first step, which traces and is no measure of the rest.
double Progbar::step_duration(int64_t current, double now) {
  if (current <= 0) return 0;
  const double duration = after_first_step_ && current > 1
                              ? (now - *after_first_step_) / static_cast<double>(current - 1)
                              : (now - start_) / static_cast<double>(current);
  if (current == 1) after_first_step_ = now;
  return duration;
}

std::string Progbar::metrics() const {
  std::string text;
  for (const std::string& name : order_) {
    const Sum& sum = sums_.at(name);
    text += fmt::format(" - {}: {}", name, metric_text(sum.total / std::max(1.0, sum.count)));
  }
  return text;
}

}  // namespace runnel::keras::utils
