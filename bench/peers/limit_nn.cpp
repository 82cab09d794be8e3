// Raw oneDNN: primitives, memory and reorders held, plain NHWC activations and HWIO weights in and out, the weights
// reordered in every call. Each layout oneDNN offers is a variant; the best counts.
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "bench/common.h"
#include "bench/shapes.h"

namespace {

using namespace dnnl;
using Call = std::function<void()>;
using tag = memory::format_tag;
using dt = memory::data_type;

engine& cpu() {
  static engine e(engine::kind::cpu, 0);
  return e;
}

memory filled(const memory::desc& desc, unsigned seed) {
  memory m(desc, cpu());
  bench::fill(static_cast<float*>(m.get_data_handle()), desc.get_size() / 4, seed);
  return m;
}

std::vector<Call> product(const bench::Matmul& c) {
  memory a = filled({{c.m, c.k}, dt::f32, tag::ab}, 1), b = filled({{c.k, c.n}, dt::f32, tag::ab}, 2);
  memory out = filled({{c.m, c.n}, dt::f32, tag::ab}, 3);
  const auto* pa = static_cast<float*>(a.get_data_handle());
  const auto* pb = static_cast<float*>(b.get_data_handle());
  auto* pc = static_cast<float*>(out.get_data_handle());
  Call sgemm = [=] {
    (void)a, (void)b, (void)out;  // kept alive
    dnnl_sgemm(c.ta ? 'T' : 'N', c.tb ? 'T' : 'N', c.m, c.n, c.k, 1.0f, pa, c.ta ? c.m : c.k, pb, c.tb ? c.k : c.n,
               0.0f, pc, c.n);
  };
  const memory::desc da({c.m, c.k}, dt::f32, c.ta ? tag::ba : tag::ab),
      db({c.k, c.n}, dt::f32, c.tb ? tag::ba : tag::ab), dc({c.m, c.n}, dt::f32, tag::ab);
  dnnl::matmul::primitive_desc pd({da, db, dc}, cpu());
  dnnl::matmul primitive(pd);
  stream s(cpu());
  memory ma(da, cpu(), a.get_data_handle()), mb(db, cpu(), b.get_data_handle());
  Call mm = [=]() mutable { primitive.execute(s, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, out}}); };
  return {sgemm, mm};
}

// A memory in the layout a primitive asked for, with the reorder from or to the user's if they differ.
struct Side {
  memory inner;
  Call in, out;
  Side(const memory& user, const memory::desc& wanted, const stream& s) : inner(user), in([] {}), out([] {}) {
    if (wanted == user.get_desc()) return;
    memory u = user, m(wanted, cpu());
    stream st = s;
    inner = m;
    reorder to(u, m), from(m, u);
    in = [=]() mutable { to.execute(st, u, m); };
    out = [=]() mutable { from.execute(st, m, u); };
  }
};

std::vector<Call> conv(const bench::Conv& c, int what) {
  const memory::dims xd{c.batch, c.in, c.size, c.size}, wd{c.out, c.in, c.kernel, c.kernel},
      yd{c.batch, c.out, c.out_size(), c.out_size()}, one{1, 1}, pad{c.pad, c.pad};
  memory x = filled({xd, dt::f32, tag::nhwc}, 1), w = filled({wd, dt::f32, tag::hwio}, 2),
         y = filled({yd, dt::f32, tag::nhwc}, 3);
  stream s(cpu());
  std::vector<Call> calls;
  for (auto [act, weights] : {std::pair{tag::nhwc, tag::any}, {tag::nhwc, tag::hwio}, {tag::any, tag::any}}) {
    const memory::desc xm(xd, dt::f32, act), wm(wd, dt::f32, weights), ym(yd, dt::f32, act);
    const auto direct = algorithm::convolution_direct;
    convolution_forward::primitive_desc f({prop_kind::forward_training, direct, xm, wm, ym, one, pad, pad}, cpu());
    if (what == 0) {
      Side sx(x, f.src_desc(), s), sw(w, f.weights_desc(), s), sy(y, f.dst_desc(), s);
      convolution_forward p(f);
      calls.push_back([=]() mutable {
        sx.in(), sw.in();
        p.execute(s, {{DNNL_ARG_SRC, sx.inner}, {DNNL_ARG_WEIGHTS, sw.inner}, {DNNL_ARG_DST, sy.inner}});
        sy.out();
      });
    } else if (what == 1) {
      convolution_backward_data::primitive_desc d({direct, xm, wm, ym, one, pad, pad}, cpu(), f);
      Side sx(x, d.diff_src_desc(), s), sw(w, d.weights_desc(), s), sy(y, d.diff_dst_desc(), s);
      convolution_backward_data p(d);
      calls.push_back([=]() mutable {
        sy.in(), sw.in();
        p.execute(s, {{DNNL_ARG_DIFF_SRC, sx.inner}, {DNNL_ARG_WEIGHTS, sw.inner}, {DNNL_ARG_DIFF_DST, sy.inner}});
        sx.out();
      });
    } else {
      convolution_backward_weights::primitive_desc g({direct, xm, wm, ym, one, pad, pad}, cpu(), f);
      Side sx(x, g.src_desc(), s), sw(w, g.diff_weights_desc(), s), sy(y, g.diff_dst_desc(), s);
      convolution_backward_weights p(g);
      calls.push_back([=]() mutable {
        sx.in(), sy.in();
        p.execute(s, {{DNNL_ARG_SRC, sx.inner}, {DNNL_ARG_DIFF_WEIGHTS, sw.inner}, {DNNL_ARG_DIFF_DST, sy.inner}});
        sw.out();
      });
    }
  }
  return calls;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<bench::Case> cases;
  for (const auto& c : bench::matmuls()) cases.push_back({c.name, [c](int) { return product(c); }});
  for (const auto& c : bench::convs()) {
    cases.push_back({c.name + "_fwd", [c](int) { return conv(c, 0); }});
    cases.push_back({c.name + "_bwd_data", [c](int) { return conv(c, 1); }});
    cases.push_back({c.name + "_bwd_weights", [c](int) { return conv(c, 2); }});
  }
  return bench::main_of(argc, argv, cases, [](int threads) { omp_set_num_threads(threads); });
}
