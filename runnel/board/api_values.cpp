// Values that are no scalars: where they are, what they hold, and the files in them.
#include "runnel/base/format.h"
#include "runnel/board/api.h"
#include "runnel/board/json.h"
#include "runnel/board/values.h"

namespace runnel::board {
namespace {

constexpr size_t kMostValues = 200;
constexpr size_t kLongestText = 1'000'000;

// Of all values of one answer together.
class Budget {
 public:
  void take_numbers(size_t count) { take(count * 16, fmt::format("{} numbers", count)); }
  void take_texts(size_t count, size_t bytes) {
    take(count * 64 + bytes, fmt::format("{} texts of {} bytes", count, bytes));
  }

 private:
  void take(size_t bytes, const std::string& what) {
    if (bytes > left_) {
      throw make_error(
          Code::resource_exhausted,
          "the value has {}, more than what is left of the {} bytes of an answer, in which a number counts "
          "as 16; ask for fewer values at once",
          what, kMost);
    }
    left_ -= bytes;
  }

  static constexpr size_t kMost = 16'000'000;
  size_t left_ = kMost;
};

size_t total_bytes(const Texts& texts) {
  size_t bytes = 0;
  for (const std::string& text : texts.values) bytes += text.size();
  return bytes;
}

// "12-3400": the file and the offset of a value.
std::string place_text(const ValuePlace& place) { return fmt::format("{}-{}", place.file, place.offset); }

ValuePlace parse_place(const std::string& text) {
  ValuePlace place;
  const size_t dash = text.find('-');
  Request parts;
  parts.parameters.emplace("at", text.substr(0, dash));
  parts.parameters.emplace("offset", dash == std::string::npos ? "" : text.substr(dash + 1));
  place.file = parts.id("at");
  place.offset = static_cast<uint64_t>(parts.number("offset", 0, 0));
  return place;
}

Response list_places(const Request& request, const Index& index) {
  const SeriesInfo info = series_of(request, index);
  const std::vector<ValuePlace> places = index.places(info.id);
  const auto size = static_cast<int64_t>(places.size());
  const int64_t begin = std::min(request.number("begin", 0, 0), size);
  const int64_t limit = request.number("limit", 100'000, 1, 100'000);
  Json steps = Json::array(), walls = Json::array(), at = Json::array();
  for (int64_t i = begin; i < std::min(size, begin + limit); ++i) {
    const ValuePlace& place = places[static_cast<size_t>(i)];
    steps.push_back(place.step);
    walls.push_back(json_number(place.wall));
    at.push_back(place_text(place));
  }
  return json_response({{"series", info.id}, {"count", size}, {"steps", steps}, {"walls", walls}, {"at", at}});
}

int64_t leading_number(const std::string& text) {
  int64_t v = 0;
  for (const char c : text.substr(0, 9)) {
    if (c < '0' || c > '9') break;
    v = v * 10 + (c - '0');
  }
  return v;
}

Json image_json(const Texts& texts, Budget& budget) {
  budget.take_texts(texts.values.size(), 0);
  Json types = Json::array();
  for (size_t i = 2; i < texts.values.size(); ++i) types.push_back(media_type(texts.values[i]));
  const bool sized = texts.values.size() >= 2;
  return {{"width", sized ? leading_number(texts.values[0]) : 0},
          {"height", sized ? leading_number(texts.values[1]) : 0},
          {"types", types}};
}

// Rows of a clip and its label; one column is clips alone.
size_t columns_of(const Texts& texts) {
  return texts.shape.size() == 2 && texts.shape[1] > 0 ? static_cast<size_t>(texts.shape[1]) : 1;
}

Json audio_json(const Texts& texts, Budget& budget) {
  const size_t columns = columns_of(texts);
  size_t labels = 0;
  for (size_t i = 1; columns > 1 && i < texts.values.size(); i += columns) labels += texts.values[i].size();
  budget.take_texts(texts.values.size(), labels);
  Json clips = Json::array();
  for (size_t i = 0; i < texts.values.size(); i += columns) {
    const std::string label = columns > 1 && i + 1 < texts.values.size() ? texts.values[i + 1] : "";
    clips.push_back({{"type", media_type(texts.values[i])}, {"bytes", texts.values[i].size()}, {"label", label}});
  }
  return {{"clips", clips}};
}

Json numbers_json(const Numbers& numbers, Budget& budget) {
  budget.take_numbers(numbers.values.size());
  Json values = Json::array();
  for (const double v : numbers.values) values.push_back(json_number(v));
  return {{"shape", numbers.shape}, {"values", values}};
}

Json value_json(const std::string& plugin, const io::EventPoint& point, Budget& budget) {
  Json json;
  try {
    if (plugin == "images") {
      json = image_json(texts_of(point), budget);
    } else if (plugin == "audio") {
      json = audio_json(texts_of(point), budget);
    } else if (holds_texts(point)) {
      Texts texts = texts_of(point);
      bool cut = false;
      for (std::string& text : texts.values) {
        cut = cut || text.size() > kLongestText;
        text.resize(std::min(text.size(), kLongestText));
      }
      budget.take_texts(texts.values.size(), total_bytes(texts));
      json = {{"shape", texts.shape}, {"texts", texts.values}, {"cut", cut}};
    } else {
      json = numbers_json(numbers_of(point), budget);
    }
  } catch (const Error& e) {
    json = {{"error", e.what()}};
  }
  json["step"] = point.event.step;
  json["wall"] = json_number(point.event.wall_time);
  return json;
}

// Several values at once: a value that is gone or damaged says so in its place.
Response read_values(const Request& request, const Index& index) {
  const SeriesInfo info = series_of(request, index);
  const std::string& list = request.text("at");
  Json values = Json::array();
  Budget budget;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (values.size() == kMostValues) throw invalid_argument("the parameter at names more than {} values", kMostValues);
    const ValuePlace place = parse_place(list.substr(begin, end - begin));
    Json json = {{"error", "the value is no longer there"}};
    index.read_value(place.file, place.offset, info.tag.tag,
                     [&](const io::EventPoint& point) { json = value_json(info.tag.plugin, point, budget); });
    values.push_back(std::move(json));
    begin = end + 1;
  }
  return json_response({{"series", info.id}, {"values", values}});
}

// The file of one image or clip, as it stands in the event.
Response read_media(const Request& request, const Index& index) {
  const SeriesInfo info = series_of(request, index);
  const bool image = info.tag.plugin == "images";
  if (!image && info.tag.plugin != "audio") {
    throw invalid_argument("'{}' holds {}, no images or audio", info.tag.tag, info.tag.plugin);
  }
  const auto number = static_cast<size_t>(request.number("number", 0, 0, 1'000'000));
  const ValuePlace place = parse_place(request.text("at"));
  std::optional<std::string> file;
  index.read_value(place.file, place.offset, info.tag.tag, [&](const io::EventPoint& point) {
    Texts texts = texts_of(point);
    const size_t i = image ? number + 2 : number * columns_of(texts);
    if (i < texts.values.size()) file = std::move(texts.values[i]);
  });
  if (!file) throw make_error(Code::not_found, "'{}' has no value {} there", info.tag.tag, number);
  return {.type = media_type(*file), .body = std::move(*file)};
}

}  // namespace

void add_value_routes(Routes& routes, const Index& index) {
  routes["/api/places"] = [&index](const Request& request) { return list_places(request, index); };
  routes["/api/values"] = [&index](const Request& request) { return read_values(request, index); };
  routes["/api/media"] = [&index](const Request& request) { return read_media(request, index); };
}

}  // namespace runnel::board
