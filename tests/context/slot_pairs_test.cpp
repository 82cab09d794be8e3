// Every slot of a thread's context with every place where code of the user may run inside of who set it: does that code
// see what was set? One table, as docs/thread_context.md tells it.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "runnel/autodiff/record.h"
#include "runnel/compat/v1.h"
#include "runnel/function/traced_blocks.h"
#include "runnel/graph/cancellation.h"
#include "runnel/graph/name_scope.h"
#include "runnel/graph/tracer.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/keras.h"
#include "runnel/op/random_context.h"
#include "runnel/runnel.h"
#include "runnel/summary/profiler.h"
#include "runnel/summary/summary.h"
#include "runnel/tensor/output_destination.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {
namespace {

using Body = std::function<void()>;

struct Around : keras::Layer {
  explicit Around(Body body) : body(std::move(body)) {}
  using Layer::call;
  Tensor call(const Tensor& x, const keras::CallArgs&) override {
    body();
    return x;
  }
  Body body;
};

// Runs the body with the slot set, by who sets it.
const std::map<std::string, std::function<void(const Body&)>>& setters() {
  static const std::map<std::string, std::function<void(const Body&)>> all{
      {"tape",
       [](const Body& body) {
         const GradientTape tape;
         body();
       }},
      {"trace",
       [](const Body& body) {
         function([&](const Tensor& x) {
           body();
           return x;
         })(Tensor(1.f));
       }},
      {"block",
       [](const Body& body) {
         function([&](const Tensor& x) {
           Tensor y = x;
           IF(x > 0) {
             y = y + 1;
             body();
           }
           return y;
         })(Tensor(1.f));
       }},
      {"destination",
       [](const Body& body) {
         const OutputDestination destination(zeros({123}));
         body();
       }},
      {"random",
       [](const Body& body) {
         RandomContext random(1);
         const RandomScope scope(random);
         body();
       }},
      {"cancellation",
       [](const Body& body) {
         const CancellationToken token;
         const CancellationScope scope(token);
         body();
       }},
      {"v1 graph",
       [](const Body& body) {
         const compat::v1::Graph graph;
         const auto scope = graph.as_default();
         body();
       }},
      {"composed",
       [](const Body& body) {
         const SourceSite site("user.cpp", "main", 7);
         const ContextScope<&ThreadContext::call_site> scope(&site);
         body();
       }},
      {"name scope",
       [](const Body& body) {
         const auto scope = name_scope("outer");
         body();
       }},
      {"summaries",
       [](const Body& body) {
         const auto scope = summary::record_if(false);
         body();
       }},
      {"layer",
       [](const Body& body) {
         Around layer(body);
         layer(Tensor(1.f), {.training = true});
       }},
      {"step",
       [](const Body& body) {
         const profiler::Trace step("train", 1);
         body();
       }},
      {"worker",
       [](const Body& body) {
         const ContextScope<&ThreadContext::worker> scope(true);
         body();
       }},
  };
  return all;
}

// Runs the body at a place; may leave it out where it cannot run there now.
struct Place {
  const char* name;
  std::function<void(const Body&)> run;
};
const std::vector<Place>& places() {
  static const std::vector<Place> all{
      {"trace",
       [](const Body& body) {
         function([&](const Tensor& x) {
           body();
           return x;
         })(Tensor(1.f));
       }},
      {"callback",
       [](const Body& body) {
         if (thread_context().interceptor) return;  // it would run with the graph
         host_call(
             [&](const std::vector<Tensor>& in) {
               body();
               return in;
             },
             {Tensor(1.f)}, {DType::float32}, {PartialShape{}});
       }},
      {"stage",
       [](const Body& body) {
         auto it = data::range(1)
                       .map([&](const Tensor& x) {
                         body();
                         return x;
                       })
                       .make_iterator();
         it.next();
       }},
      {"worker",
       [](const Body& body) {
         const auto consumer = std::this_thread::get_id();
         std::once_flag once;
         auto it = data::range(40)
                       .map(
                           [&](const Tensor& x) {
                             std::this_thread::sleep_for(std::chrono::milliseconds(1));
                             if (std::this_thread::get_id() != consumer) std::call_once(once, body);
                             return x;
                           },
                           3)
                       .make_iterator();
         while (it.next()) {
         }
       }},
      {"outside",
       [](const Body& body) {
         const OutsideTrace outside;
         body();
       }},
      {"guest",
       [](const Body& body) {
         const ThreadContext lent = thread_context().lent();
         std::thread([&] {
           const ContextScope<> guest(lent);
           body();
         }).join();
       }},
      {"thread", [](const Body& body) { std::thread(body).join(); }},
      {"layer",
       [](const Body& body) {
         Around layer(body);
         layer(Tensor(1.f));
       }},
      {"graph",
       [](const Body& body) {
         const compat::v1::Graph graph;
         const auto scope = graph.as_default();
         body();
       }},
  };
  return all;
}

struct Slot {
  const char* name;
  const char* setter;
  const void* (*of)(const ThreadContext&);
  // For each place: k, the code sees what was set; h, it does not (something else, or nothing); -, it runs later.
  const char* expected;
};

template <auto slot>
const void* pointer(const ThreadContext& c) {
  return c.*slot;
}
template <auto slot>
const void* flag(const ThreadContext& c) {
  static const bool yes = true;
  return c.*slot ? &yes : nullptr;
}

//                                                        trace, callback, stage, worker, outside, guest, thread,
//                                                        layer, graph
const Slot kSlots[] = {
    {"recorder", "tape", pointer<&ThreadContext::recorder>, "hhhhhhhkh"},
    {"interceptor", "trace", pointer<&ThreadContext::interceptor>, "h-hhhhhkh"},
    {"tracing", "trace", pointer<&ThreadContext::tracing>, "h-khkhhkk"},
    {"handle_log", "block", pointer<&ThreadContext::handle_log>, "h-hhhhhkk"},
    {"destination", "destination", pointer<&ThreadContext::destination>, "kkhhhhhkk"},
    {"random", "random", pointer<&ThreadContext::random>, "kkhhkhhkk"},
    {"cancellation", "cancellation", pointer<&ThreadContext::cancellation>, "kkkhkkhkk"},
    {"graph", "v1 graph", pointer<&ThreadContext::graph>, "k-hhhhhkh"},
    {"call_site", "composed", pointer<&ThreadContext::call_site>, "khhhkhhhk"},
    {"name_scope", "name scope", pointer<&ThreadContext::name_scope>, "hkhhkhhhk"},
    {"summary", "summaries", pointer<&ThreadContext::summary>, "kkhhkhhkk"},
    {"step", "step", pointer<&ThreadContext::step>, "kkkhkkhkk"},
    {"layer_call", "layer", pointer<&ThreadContext::layer_call>, "kkhhkhhhk"},
    {"training", "layer", flag<&ThreadContext::training>, "kkhhkhhkk"},
    {"masks", "layer", pointer<&ThreadContext::masks>, "kkhhkhhkk"},
    {"worker", "worker", flag<&ThreadContext::worker>, "kkkkkkhkk"},
};

void PrintTo(const Slot& slot, std::ostream* out) { *out << slot.name; }

class SlotPairs : public testing::TestWithParam<Slot> {};

TEST_P(SlotPairs, SeenWhereTheTableSaysSo) {
  const Slot& slot = GetParam();
  std::string seen;
  setters().at(slot.setter)([] {});  // a thread that meets summaries has defaults of its own from then on
  const void* const before = slot.of(thread_context());
  setters().at(slot.setter)([&] {
    const void* const set = slot.of(thread_context());
    ASSERT_NE(set, nullptr) << "the setter sets another slot";
    seen.clear();  // a trace may run its code more than once
    for (const Place& place : places()) {
      std::optional<bool> kept;
      place.run([&] { kept = slot.of(thread_context()) == set; });
      seen += kept ? (*kept ? 'k' : 'h') : '-';
      EXPECT_EQ(slot.of(thread_context()), set) << "not put back after " << place.name;
    }
  });
  EXPECT_EQ(seen, slot.expected);
  EXPECT_EQ(slot.of(thread_context()), before);
}

INSTANTIATE_TEST_SUITE_P(All, SlotPairs, testing::ValuesIn(kSlots),
                         [](const auto& info) { return std::string(info.param.name); });

// Whoever adds a slot says here and in docs/thread_context.md how it goes with the others.
TEST(SlotTable, HasEverySlot) {
  // All but tape_level, which goes with the recorder.
  [[maybe_unused]] const auto& [interceptor, recorder, tape_level, handle_log, destination, random, cancellation,
                                tracing, graph, layer_call, masks, call_site, name_scope, summary, step, worker,
                                training] = thread_context();
  constexpr size_t members = 17;
  EXPECT_EQ(std::size(kSlots), members - 1);
}

}  // namespace
}  // namespace runnel
