#include "runnel/summary/summary.h"

#include "runnel/base/format.h"
#include "runnel/function/control_flow.h"
#include "runnel/io/event.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/audio.h"
#include "runnel/ops/image.h"
#include "runnel/ops/math.h"
#include "runnel/ops/strings.h"
#include "runnel/summary/record.h"

namespace runnel::summary {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kScalarMetadata = "\x0a\x09\x0a\x07scalars"sv;
constexpr std::string_view kGraphVersion = "1"sv;

std::string tag_of(std::string_view name) { return in_name_scope(std::string(name)); }

std::string plugin_metadata(std::string_view plugin, std::string_view description, std::string_view content = "") {
  return serialized_metadata(plugin, content, "", description);
}

void require_rank_of(const char* what, const Tensor& data, int rank, const char* form) {
  const PartialShape shape = data.partial_shape();
  if (shape.has_rank() && shape.rank() != rank) {
    throw invalid_argument("[summary::{}] the data must be {}, got {}{}", what, form, dtype_name(data.dtype()),
                           shape.str());
  }
}

void require_outputs_count(const char* what, int64_t max_outputs) {
  if (max_outputs < 0) {
    throw invalid_argument("[summary::{}] max_outputs must not be negative, got {}", what, max_outputs);
  }
}

// The value of an eager scalar; false where only an op can tell (another dtype, a tensor of a device).
bool plain_number(const Operand& data, float* value) {
  const Tensor* t = data.tensor();
  if (!t || t->dtype() != DType::float32 || t->is_symbolic() || t->shape().rank() != 0 || !t->device().is_host()) {
    return false;
  }
  *value = *t->data<float>();
  return true;
}

Tensor scalar_tensor(const Operand& data) {
  const Tensor value = data.value();
  if (value.partial_shape().has_rank() && value.partial_shape().rank() != 0) {
    throw invalid_argument("[summary::scalar] the data must be one number of rank 0, got {}{}",
                           dtype_name(value.dtype()), value.partial_shape().str());
  }
  return value.dtype() == DType::float32 ? value : cast(value, DType::float32);
}

// Texts under a tag, for plugins that take bytes.
Tensor write_text(const char* what, std::string_view name, std::string_view bytes, const std::string& metadata,
                  const Step& step, const SourceSite& where) {
  return composed(where, [&] {
    return record(
        what, tag_of(name), [&] { return Tensor(bytes); }, step, metadata);
  });
}

}  // namespace

std::string Metadata::serialize() const {
  return serialized_metadata(plugin_name, plugin_content, display_name, description);
}

Tensor scalar(std::string_view name, const Operand& data, const Step& step, std::string_view description) {
  return composed(data.where(), [&]() -> Tensor {
    const std::string described = description.empty() ? "" : plugin_metadata("scalars", description);
    const std::string_view metadata = description.empty() ? kScalarMetadata : std::string_view(described);
    if (is_tracing()) {
      return record(
          "summary::scalar", tag_of(name), [&] { return scalar_tensor(data); }, step, metadata);
    }
    // Straight to the queue: a training step may have many of them.
    const SummaryResource* writer = eager_writer();
    if (!writer) return truth_value(false);
    float value = 0;
    if (!plain_number(data, &value)) value = scalar_tensor(data).item<float>();
    const int64_t now = eager_step(step);
    return truth_value(current_name_scope().empty() ? writer->write_scalar(now, name, value, metadata)
                                                    : writer->write_scalar(now, tag_of(name), value, metadata));
  });
}

Tensor image(std::string_view name, const Operand& data, const Step& step, int64_t max_outputs,
             std::string_view description) {
  return composed(data.where(), [&] {
    const auto encode = [&] {
      const Tensor given = data.value();
      require_rank_of("image", given, 4, "[images, height, width, channels]");
      require_outputs_count("image", max_outputs);
      const Tensor images = image::convert_image_dtype(given, DType::uint8, true);
      const Tensor encoded = image::encode_png(images(slice(0, max_outputs)));
      const Tensor sizes = shape(images);
      return concat({stack({strings::as_string(sizes[2]), strings::as_string(sizes[1])}), encoded}, 0);
    };
    return record("summary::image", tag_of(name), encode, step, plugin_metadata("images", description));
  });
}

Tensor audio(std::string_view name, const Operand& data, const Operand& sample_rate, const Step& step,
             int64_t max_outputs, const std::string& encoding, std::string_view description) {
  return composed(data.where(), [&] {
    if (encoding != "wav") throw invalid_argument("[summary::audio] the encoding must be wav, got '{}'", encoding);
    const auto encode = [&] {
      const Tensor given = data.value();
      require_rank_of("audio", given, 3, "[clips, frames, channels]");
      require_outputs_count("audio", max_outputs);
      const Tensor rate = sample_rate.is_literal() ? sample_rate.as(DType::int32) : *sample_rate.tensor();
      const Tensor clips = given(slice(0, max_outputs));
      const Tensor encoded = map_fn([&](const Tensor& clip) { return audio::encode_wav(clip, rate); }, clips);
      return stack({encoded, fill(shape(encoded), Tensor(""))}, 1);
    };
    constexpr std::string_view wav = "\x10\x0b"sv;  // AudioPluginData {encoding: WAV}
    return record("summary::audio", tag_of(name), encode, step, plugin_metadata("audio", description, wav));
  });
}

Tensor histogram(std::string_view name, const Operand& data, const Step& step, int64_t buckets,
                 std::string_view description) {
  struct Buckets {
    int64_t buckets = 30;
    static constexpr auto fields() { return field_list(field("buckets", &Buckets::buckets)); }
  };
  return composed(data.where(), [&] {
    const auto count = [&] {
      static const Op<Buckets> op("_SummaryBuckets");
      return op({data.value()}, {.buckets = std::max<int64_t>(buckets, 0)});
    };
    return record("summary::histogram", tag_of(name), count, step, plugin_metadata("histograms", description));
  });
}

Tensor text(std::string_view name, const Operand& data, const Step& step, std::string_view description) {
  return composed(data.where(), [&] {
    const Tensor* given = data.tensor();
    if (!given || given->dtype() != DType::string) {
      throw invalid_argument("[summary::text] the data must be strings, got {}",
                             dtype_name(given ? given->dtype() : data.natural_dtype()));
    }
    return record(
        "summary::text", tag_of(name), [&] { return *given; }, step, plugin_metadata("text", description));
  });
}

Tensor write(std::string_view tag, const Operand& tensor, const Step& step, std::string_view metadata) {
  return composed(tensor.where(), [&] {
    return record(
        "summary::write", tag, [&] { return tensor.value(); }, step, metadata);
  });
}

Tensor write(std::string_view tag, const std::function<Tensor()>& tensor, const Step& step, std::string_view metadata,
             SourceSite where) {
  return composed(where, [&] { return record("summary::write", tag, tensor, step, metadata); });
}

bool graph(const Graph& graph, SourceSite where) { return graph_def(graph.to_graph_def(), where); }

bool graph_def(std::string_view graph_def, SourceSite where) {
  return composed(where, [&] {
    if (is_tracing()) {
      throw make_error(Code::failed_precondition, "[summary::graph] it writes now, which a function cannot do");
    }
    const SummaryResource* writer = eager_writer();
    return writer && writer->write_event(0, io::EventKind::graph_def, graph_def);
  });
}

Tensor run_metadata_graphs(std::string_view name, std::string_view run_metadata, const Step& step, SourceSite where) {
  return write_text("summary::run_metadata_graphs", name, run_metadata,
                    plugin_metadata("graph_run_metadata_graph", "", kGraphVersion), step, where);
}

Tensor run_metadata(std::string_view name, std::string_view run_metadata, const Step& step, SourceSite where) {
  return write_text("summary::run_metadata", name, run_metadata,
                    plugin_metadata("graph_run_metadata", "", kGraphVersion), step, where);
}

Tensor keras_model(std::string_view name, const std::string& json, const Step& step, SourceSite where) {
  return write_text("summary::keras_model", name, json, plugin_metadata("graph_keras_model", "", kGraphVersion), step,
                    where);
}

Tensor experimental::write_raw_pb(const Operand& tensor, const Step& step) {
  return composed(tensor.where(), [&] {
    return recorded("summary::write_raw_pb", step, [&](const Tensor& writer, const Tensor& now) {
      static const Op<> op("WriteRawProtoSummary");
      op.many({writer, now, tensor});
    });
  });
}

}  // namespace runnel::summary
