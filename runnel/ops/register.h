#pragma once

namespace runnel {

class Registry;

// One function per family file; runnel.cpp calls them all. Family files do not include this: a new family would
// compile them all anew.
void register_argminmax(Registry& r);
void register_arithmetic(Registry& r);
void register_array_fill(Registry& r);
void register_array_gather(Registry& r);
void register_array_identity(Registry& r);
void register_array_join(Registry& r);
void register_array_mask(Registry& r);
void register_array_matrix(Registry& r);
void register_array_pad(Registry& r);
void register_array_reverse(Registry& r);
void register_array_scatter(Registry& r);
void register_array_sequence(Registry& r);
void register_array_shape(Registry& r);
void register_array_slice(Registry& r);
void register_array_tile(Registry& r);
void register_array_transpose(Registry& r);
void register_bitwise(Registry& r);
void register_cast(Registry& r);
void register_compare(Registry& r);
void register_complex(Registry& r);
void register_control(Registry& r);
void register_cumulative(Registry& r);
void register_division(Registry& r);
void register_elementary(Registry& r);
void register_fused(Registry& r);
void register_histogram(Registry& r);
void register_image_color(Registry& r);
void register_image_crop(Registry& r);
void register_image_decode(Registry& r);
void register_image_encode(Registry& r);
void register_image_resize(Registry& r);
void register_image_scale(Registry& r);
void register_io_decode(Registry& r);
void register_io_files(Registry& r);
void register_linalg_decompose(Registry& r);
void register_linalg_solve(Registry& r);
void register_logical(Registry& r);
void register_lookup(Registry& r);
void register_matmul(Registry& r);
void register_nn_activation(Registry& r);
void register_nn_bias(Registry& r);
void register_nn_conv(Registry& r);
void register_nn_depthwise(Registry& r);
void register_nn_loss(Registry& r);
void register_nn_misc(Registry& r);
void register_nn_norm(Registry& r);
void register_nn_pool(Registry& r);
void register_nn_softmax(Registry& r);
void register_parse_example(Registry& r);
void register_parse_partition(Registry& r);
void register_parse_sequence(Registry& r);
void register_probability_loss(Registry& r);
void register_ragged(Registry& r);
void register_random(Registry& r);
void register_random_stateless(Registry& r);
void register_reduce(Registry& r);
void register_rounding(Registry& r);
void register_scatter_update(Registry& r);
void register_segment(Registry& r);
void register_select(Registry& r);
void register_sort(Registry& r);
void register_sparse(Registry& r);
void register_special(Registry& r);
void register_string_text(Registry& r);
void register_string_unicode(Registry& r);
void register_strings(Registry& r);
void register_tensor_list_items(Registry& r);
void register_tensor_list_whole(Registry& r);
void register_training(Registry& r);
void register_trigonometric(Registry& r);
void register_unique(Registry& r);
void register_variable(Registry& r);

}  // namespace runnel
