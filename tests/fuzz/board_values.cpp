#include <cstdint>
#include <string_view>

#include "runnel/base/error.h"
#include "runnel/board/graph_json.h"
#include "runnel/board/hparams.h"
#include "runnel/board/values.h"

namespace {

// Errors are what damaged bytes give.
template <class F>
void try_to(F read) {
  try {
    read();
  } catch (const runnel::Error&) {
  }
}

}  // namespace

// What the board reads out of events: hyperparameters, graphs, values of every kind.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  volatile size_t sink = board::parse_hparams(bytes).has_value();
  try_to([&] { sink = sink + board::json_text(board::graph_json(bytes)).size(); });
  try_to([&] { sink = sink + board::json_text(board::run_metadata_graph_json(bytes)).size(); });
  io::EventValue value;
  if (!io::parse_event_value(bytes, &value)) return 0;
  const io::Event event;
  const io::EventPoint point{.tag = value.tag, .event = event, .value = &value};
  float number = 0;
  sink = sink + board::read_scalar(value, &number) + board::holds_texts(point);
  try_to([&] { sink = sink + board::texts_of(point).values.size(); });
  try_to([&] { sink = sink + board::numbers_of(point).values.size(); });
  return 0;
}
