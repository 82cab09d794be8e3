#pragma once

#include <string>
#include <vector>

#include "runnel/op/axes.h"
#include "runnel/op/operand.h"
#include "runnel/ops/math.h"
#include "runnel/ops/state.h"

// Neural networks. Activations are channels-last ([batch, height, width, channels]) everywhere.
namespace runnel::nn {

// --- activations ---

using runnel::sigmoid;
using runnel::tanh;
RUNNEL_API Tensor relu(const Operand& features);
RUNNEL_API Tensor relu6(const Operand& features);  // min(max(features, 0), 6)
RUNNEL_API Tensor leaky_relu(const Operand& features, double alpha = 0.2);
RUNNEL_API Tensor elu(const Operand& features);
RUNNEL_API Tensor selu(const Operand& features);
// features * P(X <= features) for a standard normal X; `approximate` computes that by tanh.
RUNNEL_API Tensor gelu(const Operand& features, bool approximate = false);
RUNNEL_API Tensor silu(const Operand& features, double beta = 1.0);  // features * sigmoid(beta * features)
inline Tensor swish(const Operand& features, double beta = 1.0) { return silu(features, beta); }
RUNNEL_API Tensor softplus(const Operand& features);  // log(1 + exp(features))
RUNNEL_API Tensor softsign(const Operand& features);  // features / (1 + abs(features))

RUNNEL_API Tensor softmax(const Operand& logits, int axis = -1);
RUNNEL_API Tensor log_softmax(const Operand& logits, int axis = -1);

// value + bias, one bias per channel.
RUNNEL_API Tensor bias_add(const Operand& value, const Operand& bias, const std::string& data_format = "NHWC");

// --- losses ---

// One loss per example: labels are distributions over `axis`.
RUNNEL_API Tensor softmax_cross_entropy_with_logits(const Operand& labels, const Operand& logits, int axis = -1);
// The same for labels that are class numbers, int32 or int64; their shape is that of the logits without the
// last dimension.
RUNNEL_API Tensor sparse_softmax_cross_entropy_with_logits(const Operand& labels, const Operand& logits);
// One loss per element: labels are independent probabilities.
RUNNEL_API Tensor sigmoid_cross_entropy_with_logits(const Operand& labels, const Operand& logits);
// The same with positive labels counting pos_weight times.
RUNNEL_API Tensor weighted_cross_entropy_with_logits(const Operand& labels, const Operand& logits,
                                                     const Operand& pos_weight);
RUNNEL_API Tensor l2_loss(const Operand& t);  // sum(t ** 2) / 2

// --- convolutions ---

struct ConvOptions {
  // One value for all spatial dimensions, one for each, or, as TensorFlow writes them, one for every
  // dimension.
  std::vector<int64_t> strides = {1};
  std::string padding = "VALID";  // or "SAME": the output has ceil(input / stride) cells; or "EXPLICIT"
  std::vector<int64_t> dilations = {1};
  std::vector<int64_t> explicit_paddings = {};  // before and after of every spatial dimension: top, bottom, left, right
  std::string data_format = {};                 // channels last, which is the default
};
// Filters are [width, in, out], [height, width, in, out] and [depth, height, width, in, out]; where they have
// fewer input channels than the input, the channels are cut into groups.
RUNNEL_API Tensor conv1d(const Operand& input, const Operand& filters, const ConvOptions& options = {});
RUNNEL_API Tensor conv2d(const Operand& input, const Operand& filters, const ConvOptions& options = {});
RUNNEL_API Tensor conv3d(const Operand& input, const Operand& filters, const ConvOptions& options = {});
// The transpose (gradient) of a convolution from output_shape to the input's shape: filters are [..., out,
// in].
RUNNEL_API Tensor conv2d_transpose(const Operand& input, const Operand& filters, const ShapeArg& output_shape,
                                   const ConvOptions& options = {});
RUNNEL_API Tensor conv3d_transpose(const Operand& input, const Operand& filters, const ShapeArg& output_shape,
                                   const ConvOptions& options = {});
// Every channel by itself: the filter is [height, width, channels, multiplier].
RUNNEL_API Tensor depthwise_conv2d(const Operand& input, const Operand& filter, const ConvOptions& options = {});
// depthwise_conv2d, then a conv2d with the 1x1 pointwise_filter.
RUNNEL_API Tensor separable_conv2d(const Operand& input, const Operand& depthwise_filter,
                                   const Operand& pointwise_filter, const ConvOptions& options = {});

// --- pooling ---

struct PoolOptions {
  // Lists as in ConvOptions.
  std::vector<int64_t> ksize = {2};
  std::vector<int64_t> strides = {};            // as ksize unless given
  std::string padding = "VALID";                // or "SAME"; padding is never part of a window
  std::vector<int64_t> explicit_paddings = {};  // max pooling over one and two dimensions only
  std::string data_format = {};                 // channels last, which is the default
};
// Over one, two or three spatial dimensions, by the rank of the input.
RUNNEL_API Tensor max_pool(const Operand& input, const PoolOptions& options = {});
RUNNEL_API Tensor avg_pool(const Operand& input, const PoolOptions& options = {});
RUNNEL_API Tensor max_pool1d(const Operand& input, const PoolOptions& options = {});
RUNNEL_API Tensor max_pool2d(const Operand& input, const PoolOptions& options = {});
RUNNEL_API Tensor max_pool3d(const Operand& input, const PoolOptions& options = {});
RUNNEL_API Tensor avg_pool1d(const Operand& input, const PoolOptions& options = {});
RUNNEL_API Tensor avg_pool2d(const Operand& input, const PoolOptions& options = {});
RUNNEL_API Tensor avg_pool3d(const Operand& input, const PoolOptions& options = {});

// --- normalisation ---

// (x - mean) / sqrt(variance + variance_epsilon) * scale + offset; an undefined offset or scale is left out.
RUNNEL_API Tensor batch_normalization(const Operand& x, const Operand& mean, const Operand& variance,
                                      const Tensor& offset, const Tensor& scale, double variance_epsilon);

struct FusedBatchNormOptions {
  Tensor mean, variance;  // the running statistics; needed unless is_training
  double epsilon = 0.001;
  bool is_training = true;
  double exponential_avg_factor = 1;  // how far the running statistics move towards the batch's
  std::string data_format = "NHWC";
};
struct FusedBatchNorm {
  Tensor y;
  Tensor mean, variance;  // of the batch (the variance unbiased), or the moved running statistics
};
RUNNEL_API FusedBatchNorm fused_batch_norm(const Operand& x, const Operand& scale, const Operand& offset,
                                           const FusedBatchNormOptions& options = {});

// (x - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance over `axis` (the last unless
// given); an undefined gamma or beta is left out.
RUNNEL_API Tensor layer_normalization(const Operand& x, const Tensor& gamma = {}, const Tensor& beta = {},
                                      const Axes& axis = {}, double epsilon = 1e-3);

// --- regularisation, embeddings, measures ---

struct DropoutOptions {
  Tensor noise_shape = {};  // of what is drawn, broadcast to x; the shape of x unless given
  int64_t seed = 0;         // a stream of its own under the global seed
};
// Elements are zero with probability `rate`; the others are scaled up so that the expected sum stays.
RUNNEL_API Tensor dropout(const Operand& x, double rate, const DropoutOptions& options = {});
// The rows of params that ids name. The gradient by a Variable is IndexedSlices.
RUNNEL_API Tensor embedding_lookup(const Operand& params, const Operand& ids);
RUNNEL_API Tensor embedding_lookup(const Variable& params, const Operand& ids);
// Is targets[i] among the k largest of predictions[i]?
RUNNEL_API Tensor in_top_k(const Operand& targets, const Operand& predictions, int64_t k);
RUNNEL_API Tensor zero_fraction(const Operand& value);  // the share of elements that are zero

}  // namespace runnel::nn
