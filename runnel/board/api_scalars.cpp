// Lines: what charts draw, and exports.
#include "runnel/base/format.h"
#include "runnel/board/api.h"
#include "runnel/board/json.h"
#include "runnel/board/line_query.h"

namespace runnel::board {
namespace {

constexpr size_t kMostSeries = 500;

template <class Get>
void append_list(std::string& out, const char* name, const std::vector<LinePoint>& points, Get get) {
  out += fmt::format(",\"{}\":[", name);
  for (size_t i = 0; i < points.size(); ++i) {
    if (i > 0) out += ',';
    append_number(out, get(points[i]));
  }
  out += ']';
}

// Columns, which are half as long as rows.
void append_line(std::string& out, const LineAnswer& line) {
  out += fmt::format("{{\"series\":{},\"count\":{},\"all\":{}", line.info.id, line.info.count, line.all);
  out += ",\"steps\":[";
  for (size_t i = 0; i < line.points.size(); ++i) out += fmt::format("{}{}", i > 0 ? "," : "", line.points[i].step);
  out += ']';
  append_list(out, "walls", line.points, [](const LinePoint& p) { return p.wall; });
  append_list(out, "values", line.points, [](const LinePoint& p) { return p.value; });
  out += '}';
}

// Series that are gone are left out: the page asks for what it knew a moment ago.
Response read_lines(const Request& request, const Index& index) {
  LineQuery query{.from = request.number("from", INT64_MIN), .to = request.number("to", INT64_MAX)};
  query.most = static_cast<size_t>(request.number("points", 2000, 4, 100'000));
  std::string out = "{\"lines\":[";
  bool first = true;
  for (const uint32_t id : request.ids("series", kMostSeries)) {
    const std::optional<LineAnswer> line = read_line(index, id, query);
    if (!line) continue;
    if (!first) out += ',';
    first = false;
    append_line(out, *line);
  }
  return {.body = out + "]}\n"};
}

LineParts parts_of(const Request& request, const Index& index) {
  const SeriesInfo info = series_of(request, index);
  if (!info.tag.is_scalar()) throw invalid_argument("'{}' holds {}, no scalars", info.tag.tag, info.tag.plugin);
  std::optional<LineParts> parts = index.line(info.id);
  if (!parts) throw make_error(Code::not_found, "the series {} has just been deleted", info.id);
  return std::move(*parts);
}

// A name for the file that a browser saves.
std::string attachment(const SeriesInfo& info, const char* kind) {
  std::string name;
  for (const char c : info.run + "_" + info.tag.tag) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
    name += plain ? c : '_';
  }
  return fmt::format("attachment; filename=\"{}.{}\"", name.substr(0, 100), kind);
}

Response export_line(const Request& request, const Index& index) {
  const std::string format = request.find("format") == nullptr ? "csv" : request.text("format");
  if (format != "csv" && format != "json") throw invalid_argument("the parameter format is csv or json");
  const bool csv = format == "csv";
  LineParts parts = parts_of(request, index);
  Response response{.type = csv ? "text/csv" : "application/json"};
  response.headers.emplace_back("Content-Disposition", attachment(parts.info, format.c_str()));
  response.body = csv ? "step,wall_time,value\n" : "[";
  auto points = std::make_shared<PointStream>(index, std::move(parts));
  response.stream = [points, csv, first = true, ended = false](std::string& more) mutable {
    if (ended) return false;
    std::vector<LinePoint> some;
    if (!points->next(&some)) {
      ended = true;
      if (!csv) more += "]\n";
      return true;
    }
    for (const LinePoint& p : some) {
      if (csv) {
        more += fmt::format("{},{:.6f},{}\n", p.step, p.wall, p.value);
      } else {
        more += first ? "{" : ",\n{";
        more += fmt::format("\"step\":{},\"wall_time\":{:.6f},\"value\":", p.step, p.wall);
        append_number(more, p.value);
        more += '}';
      }
      first = false;
    }
    return true;
  };
  return response;
}

}  // namespace

void add_scalar_routes(Routes& routes, const Index& index) {
  routes["/api/lines"] = [&index](const Request& request) { return read_lines(request, index); };
  routes["/api/export"] = [&index](const Request& request) { return export_line(request, index); };
}

}  // namespace runnel::board
