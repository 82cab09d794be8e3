#include "runnel/keras/layers/attention.h"
#include "runnel/keras/layers/dot_attention.h"
#include "runnel/keras/layers/embedding.h"
#include "runnel/keras/layers/recurrent.h"
#include "runnel/keras/layers/register.h"
#include "runnel/keras/layers/wrappers.h"

namespace runnel::keras {

void register_recurrent_layers() {
  register_layer<Embedding>();
  register_layer<SimpleRNNCell>();
  register_layer<LSTMCell>();
  register_layer<GRUCell>();
  register_layer<StackedRNNCells>();
  register_layer<RNN>();
  register_layer<SimpleRNN>();
  register_layer<LSTM>();
  register_layer<GRU>();
  register_layer<Bidirectional>();
  register_layer<TimeDistributed>();
  register_layer<EinsumDense>();
  register_layer<MultiHeadAttention>();
  register_layer<Attention>();
  register_layer<AdditiveAttention>();
}

}  // namespace runnel::keras
