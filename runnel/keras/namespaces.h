#pragma once

// The names of Keras where tf.keras has them, beside the short ones: keras::layers::Dense is keras::Dense.
#include "runnel/keras/callbacks.h"
#include "runnel/keras/layers/activation_layers.h"
#include "runnel/keras/layers/attention.h"
#include "runnel/keras/layers/cells.h"
#include "runnel/keras/layers/conv.h"
#include "runnel/keras/layers/dense.h"
#include "runnel/keras/layers/dot_attention.h"
#include "runnel/keras/layers/einsum_dense.h"
#include "runnel/keras/layers/embedding.h"
#include "runnel/keras/layers/lambda.h"
#include "runnel/keras/layers/merge.h"
#include "runnel/keras/layers/normalization.h"
#include "runnel/keras/layers/pooling.h"
#include "runnel/keras/layers/preprocessing.h"
#include "runnel/keras/layers/random_image_layers.h"
#include "runnel/keras/layers/recurrent.h"
#include "runnel/keras/layers/regularization.h"
#include "runnel/keras/layers/reshaping.h"
#include "runnel/keras/layers/resizing_layers.h"
#include "runnel/keras/layers/wrappers.h"
#include "runnel/keras/model.h"
#include "runnel/keras/model_checkpoint.h"
#include "runnel/keras/sequential.h"
#include "runnel/keras/tensorboard.h"

namespace runnel::keras {

namespace layers {
using keras::Add;
using keras::AdditiveAttention;
using keras::Attention;
using keras::Average;
using keras::AveragePooling1D;
using keras::AveragePooling2D;
using keras::AvgPool1D;
using keras::AvgPool2D;
using keras::BatchNormalization;
using keras::Bidirectional;
using keras::Concatenate;
using keras::Conv1D;
using keras::Conv2D;
using keras::Conv2DTranspose;
using keras::Conv3D;
using keras::Convolution1D;
using keras::Convolution2D;
using keras::Convolution3D;
using keras::Cropping2D;
using keras::Deconvolution2D;
using keras::Dense;
using keras::DepthwiseConv2D;
using keras::Dot;
using keras::Dropout;
using keras::EinsumDense;
using keras::ELU;
using keras::Embedding;
using keras::Flatten;
using keras::GaussianNoise;
using keras::GlobalAveragePooling1D;
using keras::GlobalAveragePooling2D;
using keras::GlobalAvgPool1D;
using keras::GlobalAvgPool2D;
using keras::GlobalMaxPool1D;
using keras::GlobalMaxPool2D;
using keras::GlobalMaxPooling1D;
using keras::GlobalMaxPooling2D;
using keras::GRU;
using keras::GRUCell;
using keras::Input;
using keras::InputLayer;
using keras::Lambda;
using keras::Layer;
using keras::LayerNormalization;
using keras::LeakyReLU;
using keras::LSTM;
using keras::LSTMCell;
using keras::Maximum;
using keras::MaxPool1D;
using keras::MaxPool2D;
using keras::MaxPooling1D;
using keras::MaxPooling2D;
using keras::Minimum;
using keras::MultiHeadAttention;
using keras::Multiply;
using keras::Normalization;
using keras::Permute;
using keras::PReLU;
using keras::RandomCrop;
using keras::RandomFlip;
using keras::RandomRotation;
using keras::RandomZoom;
using keras::ReLU;
using keras::RepeatVector;
using keras::Rescaling;
using keras::Reshape;
using keras::Resizing;
using keras::RNN;
using keras::SeparableConv2D;
using keras::SimpleRNN;
using keras::SimpleRNNCell;
using keras::Softmax;
using keras::SpatialDropout2D;
using keras::StackedRNNCells;
using keras::Subtract;
using keras::TimeDistributed;
using keras::UpSampling2D;
using keras::ZeroPadding2D;
}  // namespace layers

namespace models {
using keras::clone_model;
using keras::Model;
using keras::model_from_json;
using keras::Sequential;
}  // namespace models

namespace callbacks {
using keras::BackupAndRestore;
using keras::Callback;
using keras::CallbackList;
using keras::CSVLogger;
using keras::EarlyStopping;
using keras::History;
using keras::LambdaCallback;
using keras::LearningRateScheduler;
using keras::ModelCheckpoint;
using keras::ReduceLROnPlateau;
using keras::TensorBoard;
using keras::TerminateOnNaN;
}  // namespace callbacks

namespace backend {
using keras::clear_session;
}  // namespace backend

}  // namespace runnel::keras
