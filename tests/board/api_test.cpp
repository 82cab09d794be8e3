// What the board answers, apart from connections: routes, bad requests, values of every plugin, who may ask.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runnel/base/format.h"
#include "runnel/board/api.h"
#include "runnel/board/guard.h"
#include "runnel/board/index.h"
#include "tests/board/event_files.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

namespace runnel::board {
namespace {

using namespace test;
using nlohmann::json;
using testing::HasSubstr;

const char kRunFile[] = "run/events.out.tfevents.1.host.v2";

struct Asked {
  explicit Asked(const std::string& folder) : index({{.name = "", .path = folder}}), api(index) { index.refresh(); }
  Index index;
  Api api;

  Response ask(const std::string& path, const std::multimap<std::string, std::string>& parameters = {}) {
    Request request{.path = path};
    request.parameters = parameters;
    Response response = api.answer(request);
    if (response.stream) {
      while (response.stream(response.body)) {
      }
    }
    return response;
  }
  json get(const std::string& path, const std::multimap<std::string, std::string>& parameters = {}) {
    const Response response = ask(path, parameters);
    EXPECT_EQ(response.status, 200) << path << ": " << response.body;
    return json::parse(response.body);
  }
  std::string id(const std::string& run, const std::string& tag) {
    const auto info = index.find(run, tag);
    EXPECT_TRUE(info) << run << " " << tag;
    return std::to_string(info ? info->id : 0);
  }
  // The values of all places of a series.
  json values(const std::string& series) {
    std::string at;
    const json places = get("/api/places", {{"series", series}});
    for (const json& place : places["at"]) {
      at += (at.empty() ? "" : ",") + place.get<std::string>();
    }
    return get("/api/values", {{"series", series}, {"at", at}})["values"];
  }
};

struct OneRun {
  TempDir dir;
  OneRun() {
    append_file(dir.file(kRunFile), version_record() + scalar_record(0, 0.1f) + scalar_record(1, 1.f / 0.f) +
                                        scalar_record(2, 2, "a,b \"<script>") +
                                        image_record(4, "\x89PNG\r\n\x1a\nrest") +
                                        image_record(5, "<html><script>alert(1)</script>"));
  }
};

TEST(Api, ListsSeries) {
  OneRun one;
  Asked asked(one.dir.path());
  const json index = asked.get("/api/index");
  EXPECT_EQ(index["runs"], json::array({"run"}));
  EXPECT_EQ(index["series"].size(), 3u);
  EXPECT_EQ(asked.get("/api/index", {{"since", index["generation"].dump()}})["series"].size(), 0u);
  for (const json& series : index["series"]) {
    if (series["tag"] != "loss") continue;
    EXPECT_EQ(series["count"], 2);
    EXPECT_EQ(series["last_value"], "Infinity");
    EXPECT_EQ(series["not_finite"], 1);
  }
}

TEST(Api, DrawsAndExportsLines) {
  OneRun one;
  Asked asked(one.dir.path());
  const std::string id = asked.id("run", "loss");
  const json lines = asked.get("/api/lines", {{"series", id + ",99999"}})["lines"];
  ASSERT_EQ(lines.size(), 1u) << "series that are gone are left out";
  EXPECT_EQ(lines[0]["steps"], json::array({0, 1}));
  EXPECT_EQ(lines[0]["values"], json::array({0.1, "Infinity"}));
  EXPECT_EQ(lines[0]["walls"], json::array({1000, 1001}));
  EXPECT_TRUE(lines[0]["all"]);
  const Response csv = asked.ask("/api/export", {{"series", id}});
  EXPECT_EQ(csv.body, "step,wall_time,value\n0,1000.000000,0.1\n1,1001.000000,inf\n");
  EXPECT_EQ(csv.headers.at(0).second, "attachment; filename=\"run_loss.csv\"");
  EXPECT_EQ(asked.get("/api/export", {{"series", id}, {"format", "json"}})[1]["value"], "Infinity");
}

TEST(Api, GivesTheFilesOfImagesAndNeverAPage) {
  OneRun one;
  Asked asked(one.dir.path());
  const std::string id = asked.id("run", "image");
  const json places = asked.get("/api/places", {{"series", id}});
  EXPECT_EQ(places["steps"], json::array({4, 5}));
  EXPECT_EQ(asked.get("/api/places", {{"series", id}, {"begin", "1"}, {"limit", "1"}})["steps"], json::array({5}));
  const json values = asked.values(id);
  EXPECT_EQ(values[0]["width"], 3);
  EXPECT_EQ(values[0]["types"], json::array({"image/png"}));
  const auto media = [&](int i) {
    return asked.ask("/api/media", {{"series", id}, {"at", places["at"][i]}, {"number", "0"}});
  };
  EXPECT_EQ(media(0).type, "image/png");
  EXPECT_EQ(media(0).body, "\x89PNG\r\n\x1a\nrest");
  EXPECT_EQ(media(1).type, "application/octet-stream");
  EXPECT_EQ(asked.ask("/api/media", {{"series", id}, {"at", places["at"][0]}, {"number", "1"}}).status, 404);
}

TEST(Api, ManyLargeValuesDoNotFillTheMemory) {
  TempDir dir;
  std::string bytes = version_record();
  for (int64_t i = 0; i < 20; ++i) {
    bytes += tensor_record(i, 1000, "text", "text", text_tensor({std::string(900'000, 'x')}));
  }
  bytes += tensor_record(20, 1000, "text", "text", text_tensor({"short"}));
  append_file(dir.file(kRunFile), bytes);
  Asked asked(dir.path());
  const json values = asked.values(asked.id("run", "text"));
  ASSERT_EQ(values.size(), 21u);
  EXPECT_EQ(values[0]["texts"][0].get<std::string>().size(), 900'000u);
  EXPECT_THAT(values[19].at("error").get<std::string>(), HasSubstr("ask for fewer values at once"));
  EXPECT_EQ(values[19]["step"], 19);
  EXPECT_EQ(values[20]["texts"][0], "short") << "what still fits is there";
}

TEST(Api, AnswersBadRequestsWithWhatIsWrong) {
  OneRun one;
  Asked asked(one.dir.path());
  const std::string image = asked.id("run", "image"), loss = asked.id("run", "loss");
  struct Case {
    std::string path;
    std::multimap<std::string, std::string> parameters;
    int status;
    const char* message;
  };
  const std::string many(5000, '1');
  for (const Case& c : std::vector<Case>{
           {"/nothing", {}, 404, "nothing at this address"},
           {"/../../etc/passwd", {}, 404, "nothing at this address"},
           {"/api/lines", {}, 400, "series is missing"},
           {"/api/lines", {{"series", "x"}}, 400, "series=x is no whole number"},
           {"/api/lines", {{"series", ""}}, 400, "no whole number"},
           {"/api/lines", {{"series", "1,,2"}}, 400, "no whole number"},
           {"/api/lines", {{"series", "-1"}}, 400, "no whole number"},
           {"/api/lines", {{"series", many}}, 400, "no whole number"},
           {"/api/lines", {{"series", loss}, {"points", "1000000000"}}, 400, "points=1000000000"},
           {"/api/lines", {{"series", loss}, {"from", "1e3"}}, 400, "from=1e3"},
           {"/api/export", {{"series", "12345"}}, 404, "no series 12345"},
           {"/api/export", {{"series", image}}, 400, "holds images, no scalars"},
           {"/api/export", {{"series", loss}, {"format", "exe"}}, 400, "csv or json"},
           {"/api/values", {{"series", image}, {"at", "1"}}, 400, "no whole number"},
           {"/api/values", {{"series", image}, {"at", "1-2-3"}}, 400, "no whole number"},
           {"/api/media", {{"series", loss}, {"at", "1-0"}}, 400, "no images or audio"},
           {"/api/media", {{"series", image}, {"at", "1-7"}}, 404, "no value"},
           {"/api/media", {{"series", image}, {"at", "1-99999999999"}}, 404, "no value"},
           {"/api/graph", {{"series", loss}}, 400, "holds scalars, no graph"},
           {"/api/index", {{"since", "-1"}}, 400, "since=-1"},
       }) {
    const Response response = asked.ask(c.path, c.parameters);
    EXPECT_EQ(response.status, c.status) << c.path << ": " << response.body;
    EXPECT_THAT(json::parse(response.body)["error"].get<std::string>(), HasSubstr(c.message)) << c.path;
  }
  Request post{.method = "POST", .path = "/api/index"};
  EXPECT_EQ(asked.api.answer(post).status, 405);
}

TEST(Api, AnswersTensorBoardsRoutes) {
  OneRun one;
  Asked asked(one.dir.path());
  EXPECT_EQ(asked.get("/data/runs"), json::array({"run"}));
  const json tags = asked.get("/data/plugin/scalars/tags");
  EXPECT_EQ(tags["run"].size(), 2u);
  EXPECT_EQ(tags["run"]["loss"], json({{"displayName", ""}, {"description", ""}}));
  const json points = asked.get("/data/plugin/scalars/scalars", {{"run", "run"}, {"tag", "loss"}});
  EXPECT_EQ(points, json::parse("[[1000.0,0,0.10000000149011612],[1001.0,1,\"Infinity\"]]"));
  EXPECT_EQ(asked.ask("/data/plugin/scalars/scalars", {{"run", "run"}, {"tag", "loss"}, {"format", "csv"}}).body,
            "Wall time,Step,Value\r\n1000.0,0,0.10000000149011612\r\n1001.0,1,inf\r\n");
  const Response missing = asked.ask("/data/plugin/scalars/scalars", {{"run", "run"}, {"tag", "no"}});
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.body, "Not found: No scalar data for run='run', tag='no'");
  EXPECT_EQ(asked.ask("/data/plugin/scalars/scalars", {{"run", "run"}}).status, 400);
}

TEST(Api, ReadsEveryPluginOfTheFixtures) {
  RUNNEL_REQUIRE_FIXTURES();
  Asked x((fixtures() / "generated_by_tensorboardX").string());
  const json audio = x.values(x.id(".", "snd/a440"))[0];
  EXPECT_EQ(audio["clips"][0]["type"], "audio/wav");
  EXPECT_EQ(audio["clips"][0]["bytes"], 8044);
  const json histogram = x.values(x.id(".", "layer/w"));
  EXPECT_EQ(histogram.size(), 20u);
  EXPECT_EQ(histogram[19]["shape"], json::array({668, 3}));
  EXPECT_NEAR(histogram[19]["values"][0].get<double>(), -58.828, 1e-3);
  EXPECT_THAT(x.values(x.id(".", "notes/text_summary"))[0]["texts"][0].get<std::string>(),
              HasSubstr("**hello** world"));
  const json curve = x.values(x.id(".", "pr"))[0];
  EXPECT_EQ(curve["shape"], json::array({6, 127}));
  EXPECT_EQ(curve["values"][0], 98.0);
  const json image = x.values(x.id(".", "img/rgb"))[0];
  EXPECT_EQ(image["width"], 32);
  EXPECT_EQ(image["height"], 24);
  const json hparams = x.get("/api/hparams");
  ASSERT_EQ(hparams["sessions"].size(), 1u);
  EXPECT_EQ(hparams["sessions"][0]["run"], "1794773216.695678");
  ASSERT_EQ(hparams["metrics"].size(), 1u);
  EXPECT_EQ(hparams["metrics"][0]["name"], "hp/acc");
  EXPECT_EQ(hparams["sessions"][0]["metrics"][0], 0.93);
}

TEST(Api, ReadsGraphs) {
  RUNNEL_REQUIRE_FIXTURES();
  Asked iris((fixtures() / "lucky-the-king_Iris-Flower-Classifier/tmp/iris_model").string());
  const json graph = iris.get("/api/graph", {{"series", iris.id(".", "__run_graph__")}});
  EXPECT_GT(graph["nodes"].size(), 100u);
  for (const json& node : graph["nodes"]) {
    EXPECT_FALSE(node["name"].get<std::string>().empty());
    EXPECT_FALSE(node["op"].get<std::string>().empty());
  }
  Asked trace((fixtures() / "tf215/events/graph").string());
  int graphs = 0;
  const json index = trace.get("/api/index");
  for (const json& series : index["series"]) {
    if (!series["plugin"].get<std::string>().starts_with("graph")) continue;
    const json traced = trace.get("/api/graph", {{"series", series["id"].dump()}});
    EXPECT_TRUE(traced.contains("keras") || !traced["nodes"].empty()) << series;
    ++graphs;
  }
  EXPECT_GT(graphs, 0);
}

TEST(Guard, AnswersOnlyUnderItsOwnNames) {
  const auto refused = [](const Guard& guard, const std::string& host, const std::string& origin = "",
                          const std::string& site = "", const std::string& path = "/api/index") {
    Request request{.path = path};
    request.host = host;
    request.origin = origin;
    request.fetch_site = site;
    return guard.refuses(request).has_value();
  };
  const Guard local("127.0.0.1");
  for (const char* host : {"localhost:6006", "LOCALHOST:6006", "127.0.0.1:6006", "127.0.0.1", "[::1]:6006"}) {
    EXPECT_FALSE(refused(local, host)) << host;
  }
  for (const char* host : {"", "evil.example:6006", "localhost.evil.example", "127.0.0.1.evil.example",
                           "192.168.0.2:6006", "127.evil.example", "[::1", "::1.evil.example"}) {
    EXPECT_TRUE(refused(local, host)) << host;
  }
  EXPECT_FALSE(refused(local, "localhost:6006", "http://localhost:6006"));
  EXPECT_TRUE(refused(local, "localhost:6006", "http://localhost:8080")) << "another port is another site";
  EXPECT_TRUE(refused(local, "localhost:6006", "http://evil.example"));
  EXPECT_TRUE(refused(local, "localhost:6006", "null"));
  EXPECT_TRUE(refused(local, "localhost:6006", "", "cross-site"));
  EXPECT_TRUE(refused(local, "localhost:6006", "", "same-site"));
  EXPECT_FALSE(refused(local, "localhost:6006", "", "same-origin"));
  EXPECT_FALSE(refused(local, "localhost:6006", "", "cross-site", "/")) << "a link to the page";
  const Guard all("0.0.0.0", {"My.Machine"});
  EXPECT_FALSE(refused(all, "my.machine:6006"));
  EXPECT_FALSE(refused(all, "192.168.0.2:6006"));
  EXPECT_FALSE(refused(all, "localhost:6006"));
  EXPECT_TRUE(refused(all, "evil.example"));
  const Guard one("192.168.0.2");
  EXPECT_FALSE(refused(one, "192.168.0.2:6006"));
  EXPECT_TRUE(refused(one, "localhost:6006"));
}

}  // namespace
}  // namespace runnel::board
