"""tf.train.Checkpoint on the variables of the benchmarks of checkpoints. Needs the virtualenv of scripts/setup interop."""
import atexit
import glob
import os

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402

import checkpoint_tensors  # noqa: E402
import fastest_way  # noqa: E402

PREFIX = checkpoint_tensors.prefix("tensorflow")


def make(threads):
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    generator = numpy.random.default_rng(1)
    variables = [tf.Variable(generator.random(shape, "float32") - numpy.float32(0.5))
                 for shape in checkpoint_tensors.shapes()]
    atexit.register(checkpoint_tensors.remove, PREFIX)
    return tf.train.Checkpoint(variables=variables)


def save(threads):
    checkpoint = make(threads)

    def write():
        checkpoint.write(PREFIX)
        for path in glob.glob(PREFIX + "*"):
            checkpoint_tensors.sync(path)

    yield write, write


def restore(threads):
    checkpoint = make(threads)
    checkpoint.write(PREFIX)

    def read():
        checkpoint.read(PREFIX).assert_consumed()

    yield read, read


fastest_way.main({"ckpt_save_1gb": save, "ckpt_restore_1gb": restore})
