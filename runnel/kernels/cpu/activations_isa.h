// The array forms of activations.h for one instruction set (see foreach_isa.h). Tails go through the same
// vector code as the rest.

VFN F elu(F x) { return select(x < 0.0f, expm1(x), x); }
VFN F selu(F x) {
  return static_cast<float>(kSeluScale) * select(x < 0.0f, static_cast<float>(kSeluAlpha) * expm1(x), x);
}
VFN F softplus(F x) { return select(x < 0.0f, F{}, x) + log1p(exp(-abs(x))); }

RUNNEL_ACTIVATIONS(RUNNEL_ARRAY_FORM)

RUNNEL_ISA_TARGET void sigmoid_times_array(const float* dy, const float* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, load(dy + i) * sigmoid(load(x + i)));
  if (i < n) store_n(y + i, load_n(dy + i, n - i) * sigmoid(load_n(x + i, n - i)), n - i);
}
