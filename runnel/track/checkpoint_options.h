#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runnel/base/env.h"

namespace runnel::train {

// How a checkpoint is written or read, as tf.train.CheckpointOptions.
struct CheckpointOptions {
  // The call returns once the values are taken; a thread writes them while the program goes on. Taking them copies
  // nothing: a variable that changes before its value is on the disk is copied then, so that there is one more copy of
  // the variables at most. One save is written at a time: the next call waits for it. What went wrong is thrown by the
  // next save, sync() or restore, or stands in the log when there is none. A program that ends waits.
  bool experimental_enable_async_checkpoint = false;
  // Called in this order with the path once the files are in their places; of an asynchronous save by its thread.
  std::vector<std::function<void(const std::string& path)>> experimental_write_callbacks = {};
  Env* env = &Env::posix();  // lives until all is written
};

}  // namespace runnel::train
