// The one list of op families.
#include "runnel/data/register.h"
#include "runnel/graph/register.h"
#include "runnel/keras/register.h"
#include "runnel/op/registry.h"
#include "runnel/ops/register.h"

namespace runnel {

void register_all_ops(Registry& r);

void register_all_ops(Registry& r) {
  register_argminmax(r);
  register_arithmetic(r);
  register_array_batch(r);
  register_array_diagonal(r);
  register_array_fill(r);
  register_array_gather(r);
  register_array_identity(r);
  register_array_join(r);
  register_array_mask(r);
  register_array_matrix(r);
  register_array_pad(r);
  register_array_partition(r);
  register_array_reverse(r);
  register_array_scatter(r);
  register_array_sequence(r);
  register_array_sequences(r);
  register_array_shape(r);
  register_array_slice(r);
  register_array_tile(r);
  register_array_transpose(r);
  register_audio(r);
  register_bitwise(r);
  register_bucketize(r);
  register_cast(r);
  register_compare(r);
  register_complex(r);
  register_cond(r);
  register_control(r);
  register_counts(r);
  register_ctc(r);
  register_cumulative(r);
  register_custom_gradient(r);
  data::register_data_iterators(r);
  register_division(r);
  register_einsum(r);
  register_elementary(r);
  register_fft(r);
  register_fused(r);
  register_graph(r);
  register_histogram(r);
  register_image_boxes(r);
  register_image_color(r);
  register_image_crop(r);
  register_image_decode(r);
  register_image_encode(r);
  register_image_patches(r);
  register_image_random_boxes(r);
  register_image_resize(r);
  register_image_scale(r);
  register_image_transform(r);
  register_io_decode(r);
  register_io_files(r);
  register_linalg_decompose(r);
  register_linalg_solve(r);
  register_logical(r);
  register_lookup(r);
  register_lookup_handles(r);
  register_lookup_dense(r);
  register_matmul(r);
  register_nn_activation(r);
  register_nn_bias(r);
  register_nn_conv(r);
  register_nn_depthwise(r);
  register_nn_loss(r);
  register_nn_misc(r);
  register_nn_norm(r);
  register_nn_pool(r);
  register_nn_softmax(r);
  register_optional_values(r);
  register_parse_example(r);
  register_parse_partition(r);
  register_parse_sequence(r);
  register_probability_loss(r);
  register_quantization(r);
  register_ragged(r);
  register_ragged_rows(r);
  register_random(r);
  register_random_stateless(r);
  register_reduce(r);
  register_rounding(r);
  register_scatter_update(r);
  register_segment(r);
  register_select(r);
  keras::register_sequences(r);
  register_sets(r);
  register_sort(r);
  register_sparse(r);
  register_sparse_matmul(r);
  register_sparse_rows(r);
  register_sparse_segment(r);
  register_special(r);
  register_string_encode(r);
  register_string_hash(r);
  register_string_join(r);
  register_string_text(r);
  register_string_unicode(r);
  register_strings(r);
  register_summary(r);
  register_summary_messages(r);
  register_tensor_list_items(r);
  register_tensor_list_whole(r);
  register_training(r);
  register_trigonometric(r);
  register_unique(r);
  register_variable(r);
  register_variable_handle(r);
  register_while(r);
}

}  // namespace runnel
