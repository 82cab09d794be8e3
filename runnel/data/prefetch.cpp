#include "runnel/base/format.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"
#include "runnel/data/runner.h"

namespace runnel::data {
namespace {

class PrefetchNode : public DatasetNode {
 public:
  PrefetchNode(NodePtr input, int depth) : DatasetNode({std::move(input)}), depth_(depth) {}
  std::string name() const override { return "Prefetch"; }
  std::string details() const override { return depth_ == AUTOTUNE ? "AUTOTUNE" : fmt::format("{}", depth_); }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override { return input()->cardinality(); }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context& ctx) const override {
    const IndexedPtr view = input()->index(ctx);
    if (!view) return nullptr;
    auto made = std::make_shared<SameView>(view);
    made->wish = view->wish.with({.depth = depth_});
    return made;
  }
  IteratorPtr make_iterator(const Context& ctx) const override {
    if (IteratorPtr it = input()->iterate_ahead(ctx, depth_)) return it;
    return std::make_unique<Runner>(ctx, std::make_unique<PullJob>(input()->iterate(ctx)), 1, depth_, true,
                                    ctx.pipeline->stage_by_id(ctx.stage));
  }

 private:
  int depth_;
};

class OptionsNode : public DatasetNode {
 public:
  OptionsNode(NodePtr input, const DatasetOptions& options) : DatasetNode({std::move(input)}), options_(options) {}
  std::string name() const override { return "Options"; }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override { return input()->cardinality(); }
  const DatasetOptions* options() const override { return &options_; }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context& ctx) const override {
    const IndexedPtr view = input()->index(ctx);
    return view ? std::make_shared<SameView>(view) : nullptr;
  }
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : IteratorNode {
      IteratorPtr input;
      bool produce(Item& out) override { return input->next(out); }
      void save(StateWriter& out) const override { input->save(out); }
      void restore(StateReader& in) override { input->restore(in); }
    };
    auto it = std::make_unique<It>();
    it->input = input()->iterate(ctx);
    return it;
  }
  IteratorPtr make_iterator_ahead(const Context& ctx, int depth) const override {
    return input()->iterate_ahead(ctx, depth);
  }

 private:
  DatasetOptions options_;
};

}  // namespace

NodePtr nodes::prefetch(NodePtr input, int64_t buffer_size) {
  check_parallel("prefetch", "buffer_size", buffer_size);
  if (buffer_size == 0) return input;
  return std::make_shared<PrefetchNode>(std::move(input), static_cast<int>(std::min<int64_t>(buffer_size, 1 << 20)));
}

NodePtr nodes::with_options(NodePtr input, const DatasetOptions& options) {
  return std::make_shared<OptionsNode>(std::move(input), options);
}

}  // namespace runnel::data
