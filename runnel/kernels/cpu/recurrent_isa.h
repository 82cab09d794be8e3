// What the cells of recurrent layers do to one row of a step, for one instruction set (see foreach_isa.h): vectors of
// floats, single doubles. Gates stand side by side, u numbers each.

VFN F take(const float* p, int64_t n) { return n == W ? load(p) : load_n(p, n); }
VFN void put(float* p, F x, int64_t n) {
  if (n == W) {
    store(p, x);
  } else {
    store_n(p, x, n);
  }
}
VFN double take(const double* p, int64_t) { return *p; }
VFN void put(double* p, double x, int64_t) { *p = x; }
VFN double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
VFN double tanh(double x) { return std::tanh(x); }
template <class T>
inline constexpr int64_t kLanes = sizeof(T) == sizeof(float) ? W : 1;

// Calls body(j, n) for the vectors that make up [0, u): at j, n of them.
template <class T, class Body>
VFN void each_vector(int64_t u, const Body& body) {
  int64_t j = 0;
  for (; j + kLanes<T> <= u; j += kLanes<T>) body(j, kLanes<T>);
  if (j < u) body(j, u - j);
}

// gates become i, f, g, o; c and h what they are after the step.
template <class T>
RUNNEL_ISA_TARGET void lstm_row(int64_t u, T* gates, T* c, T* h) {
  each_vector<T>(
      u, [=](int64_t j, int64_t n) RUNNEL_ISA_TARGET __attribute__((always_inline)) {
        T* at = gates + j;
        const auto i = sigmoid(take(at, n)), f = sigmoid(take(at + u, n));
        const auto g = tanh(take(at + 2 * u, n)), o = sigmoid(take(at + 3 * u, n));
        const auto next = f * take(c + j, n) + i * g;
        put(at, i, n), put(at + u, f, n), put(at + 2 * u, g, n), put(at + 3 * u, o, n);
        put(c + j, next, n);
        put(h + j, o * tanh(next), n);
      });
}

// dc: of the state after the step, then of the one before. dz: of the gates before their functions.
template <class T>
RUNNEL_ISA_TARGET void lstm_row_gradient(int64_t u, const T* gates, const T* c, const T* dh, T* dc, T* dz) {
  each_vector<T>(
      u, [=](int64_t j, int64_t n) RUNNEL_ISA_TARGET __attribute__((always_inline)) {
        const T* at = gates + j;
        const auto i = take(at, n), f = take(at + u, n), g = take(at + 2 * u, n), o = take(at + 3 * u, n);
        const auto before = take(c + j, n), d = take(dh + j, n);
        const auto y = tanh(f * before + i * g);
        const auto dnext = take(dc + j, n) + d * o * (1.0f - y * y);
        put(dz + j, dnext * g * i * (1.0f - i), n);
        put(dz + u + j, dnext * before * f * (1.0f - f), n);
        put(dz + 2 * u + j, dnext * i * (1.0f - g * g), n);
        put(dz + 3 * u + j, d * y * o * (1.0f - o), n);
        put(dc + j, dnext * f, n);
      });
}

// gates: z, r, what r multiplies, the candidate; h becomes the state after the step.
template <class T>
RUNNEL_ISA_TARGET void gru_row(int64_t u, T* gates, T*, T* h) {
  each_vector<T>(
      u, [=](int64_t j, int64_t n) RUNNEL_ISA_TARGET __attribute__((always_inline)) {
        T* at = gates + j;
        const auto z = sigmoid(take(at, n)), r = sigmoid(take(at + u, n));
        const auto candidate = tanh(take(at + 3 * u, n) + r * take(at + 2 * u, n));
        put(at, z, n), put(at + u, r, n), put(at + 3 * u, candidate, n);
        put(h + j, z * take(h + j, n) + (1.0f - z) * candidate, n);
      });
}

// dh: of the state after the step, then what of it goes to the one before past the gates. dz: of the sums that x goes
// into; dinner: of what r multiplies.
template <class T>
RUNNEL_ISA_TARGET void gru_row_gradient(int64_t u, const T* gates, const T* h, T* dh, T* dz, T* dinner) {
  each_vector<T>(
      u, [=](int64_t j, int64_t n) RUNNEL_ISA_TARGET __attribute__((always_inline)) {
        const T* at = gates + j;
        const auto z = take(at, n), r = take(at + u, n), inner = take(at + 2 * u, n), candidate = take(at + 3 * u, n);
        const auto d = take(dh + j, n);
        const auto dcandidate = d * (1.0f - z) * (1.0f - candidate * candidate);
        put(dz + j, d * (take(h + j, n) - candidate) * z * (1.0f - z), n);
        put(dz + u + j, dcandidate * inner * r * (1.0f - r), n);
        put(dz + 2 * u + j, dcandidate, n);
        put(dinner + j, dcandidate * r, n);
        put(dh + j, d * z, n);
      });
}

template <class T>
RUNNEL_ISA_TARGET void simple_row(int64_t u, T* gates, T*, T* h) {
  each_vector<T>(
      u, [=](int64_t j, int64_t n) RUNNEL_ISA_TARGET __attribute__((always_inline)) {
        const auto y = tanh(take(gates + j, n));
        put(gates + j, y, n);
        put(h + j, y, n);
      });
}
template <class T>
RUNNEL_ISA_TARGET void simple_row_gradient(int64_t u, const T* gates, const T* dh, T* dz) {
  each_vector<T>(
      u, [=](int64_t j, int64_t n) RUNNEL_ISA_TARGET __attribute__((always_inline)) {
        const auto y = take(gates + j, n);
        put(dz + j, take(dh + j, n) * (1.0f - y * y), n);
      });
}
