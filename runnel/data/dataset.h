#pragma once

// Input pipelines, as tf.data.
//
//   auto train = data::from_tensor_slices(images, labels)
//                    .shuffle(60000)
//                    .map([](Tensor x, Tensor y) { return std::tuple{cast(x, float32) / 255, y}; }, data::AUTOTUNE)
//                    .batch(50)
//                    .prefetch(data::AUTOTUNE);
//   for (auto [x, y] : train) step(x, y);
//
// A dataset is a description: cheap to copy, never changed. Each `for` is a pass of its own. Callables should depend on
// their arguments alone: they may be called in another order than elements come out, on other threads where parallel
// calls were asked for, and again after a restore. Random ops inside draw numbers keyed by the stage, the pass and the
// element.
#include "runnel/data/csv_sources.h"
#include "runnel/data/file_sources.h"
#include "runnel/data/memory_sources.h"
#include "runnel/data/typed_dataset.h"
