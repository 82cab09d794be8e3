#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/io/profile_names.h"
#include "runnel/io/profile_report.h"

namespace runnel::io {
namespace {

// Three digits that count: "8.75 ms", "12.3 MB".
std::string with_unit(double value, std::span<const char* const> units) {
  size_t unit = 0;
  while (unit + 1 < units.size() && std::abs(value) >= 999.5) {
    value /= 1000;
    ++unit;
  }
  const double size = std::abs(value);
  const int digits = unit == 0 ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, units[unit]);
}
std::string amount(int64_t bytes) {
  static constexpr std::array<const char*, 5> units = {"B", "kB", "MB", "GB", "TB"};
  return with_unit(static_cast<double>(bytes), units);
}
std::string rate(double per_second) {
  const double giga = per_second / 1e9;
  return giga <= 0 ? "-" : fmt::format("{:.{}f}", giga, giga < 9.995 ? 2 : giga < 99.95 ? 1 : 0);
}
std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }
double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string time_text(int64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 64> text{};
  return std::string(text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local));
}

// Control characters of hostile names must not reach the terminal; the end of a name tells more than its beginning.
std::string shown_name(std::string_view name, size_t most) {
  std::string text(name);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  if (text.size() <= most) return text;
  size_t cut = text.size() - (most - 2);
  while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) ++cut;  // whole characters
  return ".." + text.substr(cut);
}

// Columns as wide as what is in them; those in `left` stand at the left.
class TextTable {
 public:
  explicit TextTable(size_t left) : left_(left) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const {
    std::vector<size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line = " ";
      for (size_t c = 0; c < row.size(); ++c) {
        line += c < left_ ? fmt::format(" {:<{}}", row[c], widths[c]) : fmt::format("  {:>{}}", row[c], widths[c]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  size_t left_;
  std::vector<std::vector<std::string>> rows_;
};

std::string step_name(const StepTimes& step) {
  return step.number < 0 ? shown_name(step.name, 40) : fmt::format("{} {}", shown_name(step.name, 40), step.number);
}

void add_steps(const ProfileReport& r, std::string& out) {
  if (!r.steps_marked) out += "\nNo step was marked, so the whole recording is taken as one.\n";
  for (const StepSummary& s : r.summaries) {
    TextTable table(1);
    const std::string head = r.steps_marked ? fmt::format("{} x {}", s.count, shown_name(s.name, 40)) : "recording";
    table.row({head, "mean", "min", "max", "share"});
    const auto row = [&](const char* what, const PartTimes& part) {
      table.row({what, profile_duration(part.total_ns / s.count), profile_duration(part.min_ns),
                 profile_duration(part.max_ns), percent(ratio(part.total_ns, s.length.total_ns))});
    };
    row("compute", s.compute);
    row("input", s.input);
    row("host", s.host);
    row("idle", s.idle);
    row("step", s.length);
    out += "\nTime of steps\n" + table.text();
    const StepTimes& longest = r.steps[s.longest];
    if (s.count > 1 && longest.length_ns > 2 * (s.length.total_ns / s.count)) {
      out += fmt::format("  The longest is {}: {} (compute {}, input {}, host {}, idle {}).\n", step_name(longest),
                         profile_duration(longest.length_ns), profile_duration(longest.compute_ns),
                         profile_duration(longest.input_ns), profile_duration(longest.host_ns),
                         profile_duration(longest.idle_ns));
    }
  }
  std::string work;
  for (const ProfiledWork& w : r.work) {
    work += fmt::format("{}{} {} ({}x)", work.empty() ? "" : ", ", profile_kind_name(w.kind),
                        profile_duration(w.total_ns), w.calls);
  }
  if (!work.empty()) out += fmt::format("  Around the ops, in all: {}\n", work);
}

void add_ops(const ProfileReport& r, size_t most, std::string& out) {
  if (r.ops.empty()) {
    out += "\nNo op was recorded.\n";
    return;
  }
  int64_t own = 0;
  bool counted = false;
  for (const ProfiledOp& op : r.ops) {
    own += op.self_ns;
    counted = counted || op.flops > 0 || op.bytes > 0;
  }
  const size_t shown = std::min(most, r.ops.size());
  out += fmt::format("\n{} of {} ops, by own time ({} in all)\n", shown, r.ops.size(), profile_duration(own));
  TextTable table(2);
  std::vector<std::string> head = {"op", "type", "calls", "total", "own", "share"};
  if (counted) head.insert(head.end(), {"GFLOP/s", "GB/s"});
  if (counted && r.peak.known()) head.push_back("of peak");
  table.row(head);
  for (size_t i = 0; i < shown; ++i) {
    const ProfiledOp& op = r.ops[i];
    std::vector<std::string> row = {
        shown_name(op.name, 40),
        op.kind == profile::Kind::chain && op.type.empty() ? "(chain)" : shown_name(op.type, 24),
        fmt::to_string(op.calls),
        profile_duration(op.total_ns),
        profile_duration(op.self_ns),
        percent(ratio(op.self_ns, own))};
    if (counted) row.insert(row.end(), {rate(op.flops_per_second()), rate(op.bytes_per_second())});
    if (counted && r.peak.known()) {
      const PeakShare near = share_of_peak(op, r.peak);
      row.push_back(near.share <= 0 ? "-"
                                    : fmt::format("{:.0f}% {}", near.share * 100, near.of_flops ? "flops" : "bytes"));
    }
    table.row(std::move(row));
  }
  out += table.text();
  if (r.peak.known()) {
    out += fmt::format("  Peak of the machine, measured when it was recorded: {} GFLOP/s (float32), {} GB/s.\n",
                       rate(r.peak.flops_per_second), rate(r.peak.bytes_per_second));
  } else if (counted) {
    out += "  The profile does not say what its machine can do at best.\n";
  }
}

void add_input(const ProfiledInput& input, std::string& out) {
  if (input.words.empty()) return;
  out += "\nInput pipeline\n";
  std::string line = " ";  // the words, in lines
  std::string_view words = input.words;
  while (!words.empty()) {
    const size_t cut = std::min(words.find(' '), words.size());
    if (line.size() + 1 + cut > 118) {
      out += line + "\n";
      line = " ";
    }
    line += fmt::format(" {}", words.substr(0, cut));
    words.remove_prefix(std::min(cut + 1, words.size()));
  }
  out += line + "\n";
  if (input.stages.empty()) return;
  TextTable table(1);
  table.row({"stage", "elements", "own time", "per element", "threads", "busy", "waited", ""});
  for (size_t i = 0; i < input.stages.size(); ++i) {
    const ProfiledStage& s = input.stages[i];
    table.row({shown_name(s.path, 48), fmt::to_string(s.elements), profile_duration(s.own_ns),
               profile_duration(s.own_ns / std::max<int64_t>(s.elements, 1)), fmt::to_string(s.threads),
               percent(s.busy), profile_duration(s.waited_ns),
               static_cast<int64_t>(i) == input.bottleneck ? "<- slowest" : ""});
  }
  out += table.text();
}

void add_memory(const ProfileReport& r, std::string& out) {
  const ProfiledMemory& m = r.memory;
  out += fmt::format("\nMemory of tensors: {} at most, at {}", amount(m.peak_bytes), profile_duration(m.peak_at_ns));
  if (m.peak_step >= 0) out += fmt::format(" (step {})", m.peak_step);
  out += fmt::format("; {} at the start, {} at the end\n", amount(m.start_bytes), amount(m.end_bytes));
  constexpr int rows = 6;
  const std::string top = amount(m.peak_bytes);
  if (m.peak_bytes > 0) {
    for (int row = rows; row > 0; --row) {
      std::string line = fmt::format("  {:>9} |", row == rows ? top : "");
      for (const int64_t bytes : m.chart) {
        // A row is filled from its middle on.
        const double level = static_cast<double>(bytes) / static_cast<double>(m.peak_bytes) * rows;
        line += level > row - 0.5 ? '#' : ' ';
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    const std::string end = profile_duration(r.length_ns);
    out += fmt::format("  {:>9} +{}\n", 0, std::string(m.chart.size(), '-'));
    out += fmt::format("  {:>9}  0{:>{}}\n", "", end, m.chart.size() - 1);
  }
  TextTable table(1);
  table.row({"held at the peak by", "bytes", "share"});
  constexpr size_t most = 8;
  for (size_t i = 0; i < std::min(most, m.holders.size()); ++i) {
    const MemoryHolder& h = m.holders[i];
    table.row({h.op.empty() ? "(there before the recording)" : shown_name(h.op, 60), amount(h.bytes),
               percent(ratio(h.bytes, m.peak_bytes))});
  }
  if (!m.holders.empty()) out += table.text();
  if (m.holders.size() > most) out += fmt::format("  and {} more\n", m.holders.size() - most);
}

}  // namespace

std::string profile_duration(int64_t ns) {
  static constexpr std::array<const char*, 4> units = {"ns", "us", "ms", "s"};
  return with_unit(static_cast<double>(ns), units);
}

std::string profile_report_text(const ProfileReport& r, size_t most_ops) {
  std::string out = r.host.empty() ? "Profile" : fmt::format("Profile of {}", shown_name(r.host, 60));
  if (r.started_unix_ns > 0) out += ", " + time_text(r.started_unix_ns);
  out += fmt::format(": {} with {} events on {} thread{}\n", profile_duration(r.length_ns), r.events, r.threads,
                     r.threads == 1 ? "" : "s");
  if (r.lost > 0)
    out += fmt::format("{} events found no room and are missing: the times below are too short.\n", r.lost);
  add_steps(r, out);
  add_ops(r, most_ops, out);
  add_input(r.input, out);
  if (r.has_memory) add_memory(r, out);
  return out;
}

}  // namespace runnel::io
