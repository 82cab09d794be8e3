#include "runnel/keras/activations.h"

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/keras/find_named.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel::keras {
namespace {

struct PlainActivation {
  const char* name;
  Tensor (*apply)(const Tensor& x);
};

constexpr PlainActivation kPlainActivations[] = {
    {"linear", [](const Tensor& x) { return x; }},
    {"relu", [](const Tensor& x) { return nn::relu(x); }},
    {"relu6", [](const Tensor& x) { return nn::relu6(x); }},
    {"elu", [](const Tensor& x) { return nn::elu(x); }},
    {"selu", [](const Tensor& x) { return nn::selu(x); }},
    {"gelu", [](const Tensor& x) { return nn::gelu(x); }},
    {"leaky_relu", [](const Tensor& x) { return nn::leaky_relu(x); }},
    {"swish", [](const Tensor& x) { return nn::swish(x); }},
    {"silu", [](const Tensor& x) { return nn::silu(x); }},
    {"softplus", [](const Tensor& x) { return nn::softplus(x); }},
    {"softsign", [](const Tensor& x) { return nn::softsign(x); }},
    {"softmax",
     [](const Tensor& x) {
       if (x.partial_shape().rank() == 1) {
         throw invalid_argument("[softmax] an activation needs at least two dimensions, got shape {}",
                                x.partial_shape().str());
       }
       return nn::softmax(x);
     }},
    {"log_softmax", [](const Tensor& x) { return nn::log_softmax(x); }},
    {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
    {"hard_sigmoid", [](const Tensor& x) { return clip_by_value(x * 0.2 + 0.5, 0, 1); }},
    {"tanh", [](const Tensor& x) { return tanh(x); }},
    {"exponential", [](const Tensor& x) { return exp(x); }},
    {"mish", [](const Tensor& x) { return x * tanh(nn::softplus(x)); }},
};

double alpha_of(const Config& settings, double otherwise) {
  const Config* alpha = settings.find("alpha");
  return alpha ? alpha->as_double() : otherwise;
}

}  // namespace

Activation Activations::find(const Config& description, SourceSite where) {
  return at_caller(where, [&]() -> Activation {
    const Description wanted = read_description(kWhat, description);
    std::vector<std::string_view> known;
    for (const auto& [name, apply] : kPlainActivations) {
      if (wanted.name == name) return {Config(name), apply};
      known.emplace_back(name);
    }
    // Keras writes activations with settings as the layers that have them, whose defaults these are.
    if (wanted.name == "LeakyReLU") return activations::leaky_relu(alpha_of(wanted.settings, 0.3));
    if (wanted.name == "ELU") return activations::elu(alpha_of(wanted.settings, 1));
    if (Activation own = find_registered<Activation>(wanted)) return own;
    known.insert(known.end(), {"LeakyReLU", "ELU"});
    unknown_description(kWhat, wanted.name, known);
  });
}

namespace activations {

Activation leaky_relu(double alpha) {
  return {object_config("LeakyReLU", {{"alpha", alpha}}), [=](const Tensor& x) { return nn::leaky_relu(x, alpha); }};
}

Activation elu(double alpha) {
  return {object_config("ELU", {{"alpha", alpha}}), [=](const Tensor& x) {
            const Tensor y = nn::elu(x);
            return alpha == 1 ? y : where(x > 0, y, y * alpha);
          }};
}

}  // namespace activations
}  // namespace runnel::keras
