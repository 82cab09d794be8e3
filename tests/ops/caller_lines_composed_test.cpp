// Functions that are made of several ops name the line of the program that called them, whichever op inside refuses,
// and whether it is an op or the function itself that does.
#include "runnel/runnel.h"
#include "tests/support/caller_lines.h"

namespace runnel {
namespace {

struct ComposedCallerLines : testing::Test {
  const Tensor x{1.f, 2.f};
  const Tensor m{{1.f, 2.f}, {3.f, 4.f}};
  const Tensor i{1, 2};
  const Tensor text{"a", "b"};
  const Tensor image = zeros({4, 4, 3});
};

TEST_F(ComposedCallerLines, Array) {
  EXPECT_NAMES_THIS_LINE(unstack(x, 3));
  EXPECT_NAMES_THIS_LINE(unstack(x, 0, 5));
  EXPECT_NAMES_THIS_LINE(unstack(Tensor(1.f)));
  EXPECT_NAMES_THIS_LINE(repeat(x, Tensor{1, 2, 3}, 0));
  EXPECT_NAMES_THIS_LINE(repeat(x, 2, 4));
  EXPECT_NAMES_THIS_LINE(repeat(x, text));
  EXPECT_NAMES_THIS_LINE(searchsorted(x, 1.f));
  EXPECT_NAMES_THIS_LINE(searchsorted(x, x, "middle"));
  EXPECT_NAMES_THIS_LINE(searchsorted(x, i));
  EXPECT_NAMES_THIS_LINE(boolean_mask(x, Tensor{true}));
  EXPECT_NAMES_THIS_LINE(boolean_mask(x, i));
  EXPECT_NAMES_THIS_LINE(boolean_mask(x, Tensor{true, false}, 3));
  EXPECT_NAMES_THIS_LINE(sequence_mask(text));
  EXPECT_NAMES_THIS_LINE(sequence_mask(i, i));
  EXPECT_NAMES_THIS_LINE(meshgrid({x, x}, "ji"));
  EXPECT_NAMES_THIS_LINE(one_hot(i, 3, -1, DType::string));
  EXPECT_NAMES_THIS_LINE(linspace(m, x, 0));
  EXPECT_NAMES_THIS_LINE(linspace(x, Tensor{1.f, 2.f, 3.f}, 5));
  EXPECT_NAMES_THIS_LINE(range(0, 2.5f, true));
  EXPECT_NAMES_THIS_LINE(eye(2, 2, {2}, DType::string));
  EXPECT_NAMES_THIS_LINE(gather_nd(x, Tensor{{0}}, 5));
  EXPECT_NAMES_THIS_LINE(scatter_nd(Tensor{{9}}, x, {2, 2}));
  EXPECT_NAMES_THIS_LINE(strided_slice(x, text, {1}));
  EXPECT_NAMES_THIS_LINE(squeeze(x, Tensor{0.5f}));
  EXPECT_NAMES_THIS_LINE(constant(x, DType::float32, {3}));
  EXPECT_NAMES_THIS_LINE(merge_slices({x, i, {}}, {m, i, {}}));
  EXPECT_NAMES_THIS_LINE(to_dense(IndexedSlices{x, Tensor{7, 8}, Tensor{2}}));
  EXPECT_NAMES_THIS_LINE(sparse::to_dense({Tensor{{int64_t{9}}}, Tensor{1.f}, Tensor{int64_t{2}}}));
  EXPECT_NAMES_THIS_LINE(sparse::reorder({x, x, x}));
  EXPECT_NAMES_THIS_LINE(sparse::eye(-1));
}

TEST_F(ComposedCallerLines, Math) {
  EXPECT_NAMES_THIS_LINE(einsum("ij,jk->ik", x, m));
  EXPECT_NAMES_THIS_LINE(einsum("ij,jk->ik", {m, i}));
  EXPECT_NAMES_THIS_LINE(einsum("ij->", x));
  EXPECT_NAMES_THIS_LINE(tensordot(x, m, 5));
  EXPECT_NAMES_THIS_LINE(tensordot(m, m, {0}, {4}));
  EXPECT_NAMES_THIS_LINE(tensordot(m, Tensor{{1, 2}, {3, 4}}, 1));
  EXPECT_NAMES_THIS_LINE(x / i);
  EXPECT_NAMES_THIS_LINE(i / 2.5f);
  EXPECT_NAMES_THIS_LINE(i / Tensor{1, 2, 3});
  EXPECT_NAMES_THIS_LINE(saturate_cast(x, DType::string));
  EXPECT_NAMES_THIS_LINE(angle(text));
  EXPECT_NAMES_THIS_LINE(math::reduce_std(x, 3));
  EXPECT_NAMES_THIS_LINE(math::reduce_std(i));
  EXPECT_NAMES_THIS_LINE(math::reduce_variance(x, 3));
  EXPECT_NAMES_THIS_LINE(math::reduce_euclidean_norm(text));
  EXPECT_NAMES_THIS_LINE(math::count_nonzero(x, 4));
  EXPECT_NAMES_THIS_LINE(reduce_logsumexp(i));
  EXPECT_NAMES_THIS_LINE(clip_by_value(x, Tensor{1.f, 2.f, 3.f}, 2.f));
  EXPECT_NAMES_THIS_LINE(clip_by_value(x, Tensor(), 2.f));
  EXPECT_NAMES_THIS_LINE(clip_by_value(x, 1.f, Tensor()));
  EXPECT_THAT(test::message_of([&] { clip_by_value(x, Tensor(), 2.f); }), testing::HasSubstr("[ClipByValue]"));
  EXPECT_NAMES_THIS_LINE(math::bincount(x));
  EXPECT_NAMES_THIS_LINE(math::bincount(i, {.weights = Tensor{1.f}}));
  EXPECT_NAMES_THIS_LINE(math::confusion_matrix(Tensor{1, 2, 3}, i));
  EXPECT_NAMES_THIS_LINE(math::confusion_matrix(i, i, 1));
  EXPECT_NAMES_THIS_LINE(histogram_fixed_width_bins(x, Tensor{0.f, 1.f, 2.f}));
  EXPECT_NAMES_THIS_LINE(histogram_fixed_width_bins(x, {0.f, 1.f}, 0));
  EXPECT_NAMES_THIS_LINE(math::unsorted_segment_mean(x, Tensor{0, 9}, 2));
  EXPECT_NAMES_THIS_LINE(math::unsorted_segment_sqrt_n(i, i, text));
  EXPECT_NAMES_THIS_LINE(sort(x, 2));
  EXPECT_NAMES_THIS_LINE(sort(x, 0, "UP"));
  EXPECT_NAMES_THIS_LINE(argsort(text));
}

TEST_F(ComposedCallerLines, LinearAlgebra) {
  EXPECT_NAMES_THIS_LINE(linalg::norm(i));
  EXPECT_NAMES_THIS_LINE(linalg::norm(x, 3, 4));
  EXPECT_NAMES_THIS_LINE(linalg::norm(x, "manhattan"));
  EXPECT_NAMES_THIS_LINE(linalg::norm(m, 7, {0, 1}));
  EXPECT_NAMES_THIS_LINE(linalg::norm(x, -1));
  EXPECT_NAMES_THIS_LINE(linalg::norm(i, 2.5, 0));
  EXPECT_NAMES_THIS_LINE(linalg::matrix_transpose(x));
  EXPECT_NAMES_THIS_LINE(linalg::adjoint(x));
  EXPECT_NAMES_THIS_LINE(linalg::trace(x));
  EXPECT_NAMES_THIS_LINE(linalg::matvec(m, Tensor{1.f, 2.f, 3.f}));
  EXPECT_NAMES_THIS_LINE(linalg::logdet(x));
  EXPECT_NAMES_THIS_LINE(linalg::cholesky_solve(m, x));
  EXPECT_NAMES_THIS_LINE(linalg::global_norm(std::vector<Tensor>{x, text}));
  EXPECT_NAMES_THIS_LINE(matmul(m, m, {.transpose_a = true, .adjoint_a = true}));
  EXPECT_NAMES_THIS_LINE(matmul(x, m));
  EXPECT_NAMES_THIS_LINE(math::l2_normalize(i));
  EXPECT_NAMES_THIS_LINE(clip_by_norm(x, Tensor(1)));
  EXPECT_NAMES_THIS_LINE(clip_by_norm(Gradient(x), Tensor(1)));
  EXPECT_NAMES_THIS_LINE(clip_by_global_norm(std::vector<Tensor>{x, text}, 1.f));
}

TEST_F(ComposedCallerLines, Networks) {
  const Tensor cube = zeros({1, 4, 4, 4, 1});
  EXPECT_NAMES_THIS_LINE(nn::dropout(x, 2.0));
  EXPECT_NAMES_THIS_LINE(nn::dropout(i, 0.5));
  EXPECT_NAMES_THIS_LINE(nn::dropout(x, 0.5, {.noise_shape = Tensor{3}}));
  EXPECT_NAMES_THIS_LINE(nn::moments(x, {4}));
  EXPECT_NAMES_THIS_LINE(nn::moments(text, {0}));
  EXPECT_NAMES_THIS_LINE(nn::silu(i));
  EXPECT_NAMES_THIS_LINE(nn::gelu(i));
  EXPECT_NAMES_THIS_LINE(nn::softmax(x, 3));
  EXPECT_NAMES_THIS_LINE(nn::log_softmax(Tensor{{1, 2}, {3, 4}}, 0));
  EXPECT_NAMES_THIS_LINE(nn::softmax_cross_entropy_with_logits(m, Tensor{{1.f, 2.f, 3.f}}));
  EXPECT_NAMES_THIS_LINE(nn::softmax_cross_entropy_with_logits(m, m, 5));
  EXPECT_NAMES_THIS_LINE(nn::sparse_softmax_cross_entropy_with_logits(m, m));
  EXPECT_NAMES_THIS_LINE(nn::sigmoid_cross_entropy_with_logits(i, x));
  EXPECT_NAMES_THIS_LINE(nn::weighted_cross_entropy_with_logits(x, x, i));
  EXPECT_NAMES_THIS_LINE(nn::zero_fraction(Tensor()));
  EXPECT_NAMES_THIS_LINE(nn::in_top_k(text, m, 1));
  EXPECT_NAMES_THIS_LINE(nn::batch_normalization(m, Tensor{1.f, 2.f, 3.f}, x, {}, {}, 1e-3));
  EXPECT_NAMES_THIS_LINE(nn::batch_normalization(m, x, i, {}, {}, 1e-3));
  EXPECT_NAMES_THIS_LINE(nn::fused_batch_norm(m, Tensor(), x));
  EXPECT_NAMES_THIS_LINE(nn::layer_normalization(m, Tensor{1.f, 2.f, 3.f}));
  EXPECT_NAMES_THIS_LINE(nn::conv1d(zeros({1, 4, 1}), zeros({3, 1, 1}), {.strides = {1, 2, 3, 4, 5}}));
  EXPECT_NAMES_THIS_LINE(nn::conv1d(x, x));
  EXPECT_NAMES_THIS_LINE(nn::conv2d(zeros({1, 4, 4, 1}), zeros({3, 3, 1, 1}), {.strides = {1, 2, 3}}));
  EXPECT_NAMES_THIS_LINE(nn::conv3d(cube, zeros({3, 3, 3, 1, 1}), {.explicit_paddings = {1}}));
  EXPECT_NAMES_THIS_LINE(nn::conv2d_transpose(x, x, {1, 2, 3, 4}, {.strides = {1, 2, 3}}));
  EXPECT_NAMES_THIS_LINE(nn::conv3d_transpose(cube, zeros({3, 3, 3, 1, 1}), {1}, {.explicit_paddings = {1}}));
  EXPECT_NAMES_THIS_LINE(nn::depthwise_conv2d(x, x, {.strides = {1, 2, 3}}));
  EXPECT_NAMES_THIS_LINE(nn::separable_conv2d(zeros({1, 4, 4, 1}), zeros({3, 3, 1, 2}), zeros({1, 1, 5, 1})));
  EXPECT_NAMES_THIS_LINE(nn::max_pool(x));
  EXPECT_NAMES_THIS_LINE(nn::avg_pool(x));
  EXPECT_NAMES_THIS_LINE(nn::max_pool1d(zeros({1, 4, 1}), {.data_format = "NCW"}));
  EXPECT_NAMES_THIS_LINE(nn::avg_pool1d(zeros({1, 4, 1}), {.ksize = {1, 2}}));
  EXPECT_NAMES_THIS_LINE(nn::max_pool2d(zeros({1, 4, 4, 1}), {.ksize = {1, 2, 3}}));
  EXPECT_NAMES_THIS_LINE(nn::avg_pool2d(zeros({1, 4, 4, 1}), {.explicit_paddings = {1}}));
  EXPECT_NAMES_THIS_LINE(nn::max_pool3d(cube, {.ksize = {1, 2}}));
  EXPECT_NAMES_THIS_LINE(nn::avg_pool3d(cube, {.ksize = {1, 2}}));
}

TEST_F(ComposedCallerLines, Images) {
  const Tensor grey = zeros({4, 4, 1});
  const Tensor seed{1, 2};
  EXPECT_NAMES_THIS_LINE(image::convert_image_dtype(text, DType::uint8));
  EXPECT_NAMES_THIS_LINE(image::adjust_brightness(text, 0.5f));
  EXPECT_NAMES_THIS_LINE(image::adjust_contrast(x, 2.f));
  EXPECT_NAMES_THIS_LINE(image::adjust_gamma(image, -1));
  EXPECT_NAMES_THIS_LINE(image::adjust_hue(image, 3.f));
  EXPECT_NAMES_THIS_LINE(image::adjust_hue(grey, 0.5f));
  EXPECT_NAMES_THIS_LINE(image::adjust_saturation(grey, 0.5f));
  EXPECT_NAMES_THIS_LINE(image::adjust_jpeg_quality(image, 300));
  EXPECT_NAMES_THIS_LINE(image::rgb_to_grayscale(grey));
  EXPECT_NAMES_THIS_LINE(image::grayscale_to_rgb(image));
  EXPECT_NAMES_THIS_LINE(image::per_image_standardization(x));
  EXPECT_NAMES_THIS_LINE(image::resize(x, {2, 2}));
  EXPECT_NAMES_THIS_LINE(image::resize(image, {2, 2}, {.method = "best"}));
  EXPECT_NAMES_THIS_LINE(image::resize(image, {-2, 2}));
  EXPECT_NAMES_THIS_LINE(image::resize_with_pad(image, 0, 2));
  EXPECT_NAMES_THIS_LINE(image::resize_with_crop_or_pad(image, -1, 2));
  EXPECT_NAMES_THIS_LINE(image::central_crop(image, 2));
  EXPECT_NAMES_THIS_LINE(image::crop_to_bounding_box(image, 0, 0, 9, 9));
  EXPECT_NAMES_THIS_LINE(image::pad_to_bounding_box(image, 0, 0, 1, 1));
  EXPECT_NAMES_THIS_LINE(image::flip_left_right(x));
  EXPECT_NAMES_THIS_LINE(image::flip_up_down(x));
  EXPECT_NAMES_THIS_LINE(image::rot90(x));
  EXPECT_NAMES_THIS_LINE(image::transpose(x));
  EXPECT_NAMES_THIS_LINE(image::total_variation(x));
  EXPECT_NAMES_THIS_LINE(image::psnr(image, grey, 1.f));
  EXPECT_NAMES_THIS_LINE(image::ssim(image, image, 1.f));
  EXPECT_NAMES_THIS_LINE(image::ssim_multiscale(image, image, 1.f, {}));
  EXPECT_NAMES_THIS_LINE(image::is_jpeg(x));
  EXPECT_NAMES_THIS_LINE(image::random_crop(image, {9, 9, 3}));
  EXPECT_NAMES_THIS_LINE(image::random_flip_left_right(x));
  EXPECT_NAMES_THIS_LINE(image::random_brightness(image, -1));
  EXPECT_NAMES_THIS_LINE(image::random_contrast(image, 2, 1));
  EXPECT_NAMES_THIS_LINE(image::random_hue(image, 2));
  EXPECT_NAMES_THIS_LINE(image::random_saturation(image, 2, 1));
  EXPECT_NAMES_THIS_LINE(image::random_jpeg_quality(image, 90, 300));
  EXPECT_NAMES_THIS_LINE(image::stateless_random_crop(image, {2, 2, 3}, Tensor{1}));
  EXPECT_NAMES_THIS_LINE(image::stateless_random_flip_up_down(image, x));
  EXPECT_NAMES_THIS_LINE(image::stateless_random_brightness(image, -1, seed));
  EXPECT_NAMES_THIS_LINE(image::stateless_random_hue(grey, 0.1, seed));
}

}  // namespace
}  // namespace runnel
