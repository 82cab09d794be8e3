// Batches of Examples into dense arrays with libprotobuf: one arena for the whole batch, kept and reset.
#include <google/protobuf/arena.h>

#include <memory>

#include "bench/common.h"
#include "bench/records.h"
#include "example.pb.h"

namespace {

using Call = std::function<void()>;
using bench::kBatch;
using google::protobuf::Arena;

std::vector<std::vector<std::string>> batches(std::string (*record)(int)) {
  std::vector<std::vector<std::string>> all(bench::kBatches);
  for (int b = 0; b < bench::kBatches; ++b) {
    for (int i = 0; i < kBatch; ++i) all[static_cast<size_t>(b)].push_back(record(b * kBatch + i));
  }
  return all;
}

const bench::pb::Feature& feature(const bench::pb::Example& example, const std::string& key) {
  const auto& map = example.features().feature();
  const auto it = map.find(key);
  if (it == map.end()) std::abort();
  return it->second;
}

// Calls fill(i, example) for each record of the next batch.
template <class Fill>
Call parse(std::string (*record)(int), Fill fill) {
  struct State {
    std::vector<std::vector<std::string>> all;
    std::vector<char> block = std::vector<char>(1 << 20);
    std::unique_ptr<Arena> arena;
    size_t next = 0;
  };
  auto state = std::make_shared<State>();
  state->all = batches(record);
  google::protobuf::ArenaOptions options;
  options.initial_block = state->block.data();
  options.initial_block_size = state->block.size();
  state->arena = std::make_unique<Arena>(options);
  return [state, fill]() mutable {
    const auto& batch = state->all[state->next++ % state->all.size()];
    for (size_t i = 0; i < batch.size(); ++i) {
      auto* example = Arena::CreateMessage<bench::pb::Example>(state->arena.get());
      if (!example->ParseFromString(batch[i])) std::abort();
      fill(i, *example);
    }
    state->arena->Reset();
  };
}

struct Images {
  std::vector<std::string> image = std::vector<std::string>(kBatch);
  std::vector<int64_t> label = std::vector<int64_t>(kBatch);
};
struct Small {
  std::vector<float> values = std::vector<float>(kBatch * 16);
  std::vector<int64_t> id = std::vector<int64_t>(kBatch);
  std::vector<std::string> name = std::vector<std::string>(kBatch);
};

Call images() {
  auto out = std::make_shared<Images>();
  return parse(bench::image_record, [out, image = std::string("image_raw"), label = std::string("label")](
                                        size_t i, const bench::pb::Example& e) {
    out->image[i] =
        feature(e, image).bytes_list().value(0);  // the strings of the batch before are overwritten in place
    out->label[i] = feature(e, label).int64_list().value(0);
  });
}

Call small() {
  auto out = std::make_shared<Small>();
  return parse(bench::small_record, [out, values = std::string("values"), id = std::string("id"),
                                     name = std::string("name")](size_t i, const bench::pb::Example& e) {
    const auto& list = feature(e, values).float_list().value();
    if (list.size() != 16) std::abort();
    std::copy(list.begin(), list.end(), out->values.begin() + static_cast<long>(16 * i));
    out->id[i] = feature(e, id).int64_list().value(0);
    out->name[i] = feature(e, name).bytes_list().value(0);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return bench::main_of(argc, argv,
                        {{"example_parse", [](int) { return std::vector<Call>{images()}; }},
                         {"example_parse_small", [](int) { return std::vector<Call>{small()}; }}},
                        [](int) {});
}
