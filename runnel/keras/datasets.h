#pragma once

// Well-known datasets: fetched once (see `runnel data get`), then read from the cache folder.
#include <string>
#include <utility>

#include "runnel/data/dataset.h"

namespace runnel::keras::datasets {

// {x, y}
using Arrays = std::pair<Tensor, Tensor>;
// {{x_train, y_train}, {x_test, y_test}}
//
//   const auto [train, test] = keras::datasets::mnist::load_data();
//   const auto [x_train, y_train] = train;
using TrainAndTest = std::pair<Arrays, Arrays>;

// `dir`: the folder of the files; empty: the cache folder. What is missing there is fetched.

// Handwritten digits: uint8 [60000,28,28] and [60000], uint8 [10000,28,28] and [10000].
namespace mnist {
RUNNEL_API TrainAndTest load_data(const std::string& dir = "", SourceSite where = SourceSite::current());
}
// Clothes of ten kinds, in MNIST's format.
namespace fashion_mnist {
RUNNEL_API TrainAndTest load_data(const std::string& dir = "", SourceSite where = SourceSite::current());
}
// Photographs of ten kinds: uint8 [50000,32,32,3] and [50000,1], uint8 [10000,32,32,3] and [10000,1].
namespace cifar10 {
RUNNEL_API TrainAndTest load_data(const std::string& dir = "", SourceSite where = SourceSite::current());
}

struct LoadOptions {
  bool as_supervised = false;  // elements {image, label} instead of the map {"image": ..., "label": ...}
  std::string data_dir = {};   // the folder of the files; empty: the cache folder
};
// A dataset by name, as tfds.load gives it: images uint8 [28,28,1] or [32,32,3], labels int64 scalars. The split is
// "train" or "test", a part of one ("train[:80%]", "test[1000:]", "train[-10%:]"), or several joined by '+'.
RUNNEL_API data::AnyDataset load(const std::string& name, const std::string& split, const LoadOptions& options = {},
                                 SourceSite where = SourceSite::current());

}  // namespace runnel::keras::datasets
