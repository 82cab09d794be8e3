"""The opponent of bench/ops: single ops of TensorFlow 2.15, called as Python programs call them. Reads calls from
standard input, a line each (bench/ops.txt says how), and writes the seconds of one call, or what is wrong.
usage: tf_ops.py --threads N --seconds S"""
import argparse
import os
import re
import sys
import time

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402
from tensorflow.python.util import tf_inspect  # noqa: E402


def tensor(text):
    dtype_name = re.match(r"\w+", text).group()
    rest = text[len(dtype_name):]
    dtype = tf.as_dtype(dtype_name)
    if rest[0] == "=":
        return tf.cast(tf.constant(eval(rest[1:])), dtype)  # pylint: disable=eval-used  # numbers and lists of bench/ops.txt
    sizes, _, kind = rest[1:].partition("]")
    shape, kind = [int(n) for n in sizes.split(",") if n], kind[1:]
    n = int(np.prod(shape))
    if dtype == tf.string:
        words = [str(i * 7919 % 100003) for i in range(n)]
        if kind == "words":
            words = [f"w{w} of the line {w}" for w in words]
        return tf.constant(words, tf.string, shape) if shape else tf.constant(words[0])
    low, high = map(float, kind.split("..")) if ".." in kind else (0, 100) if dtype.is_integer else (-1, 1)
    values = np.random.RandomState(1).uniform(low, high, n)
    if dtype.is_integer:
        values = np.floor(values)
    if dtype.is_bool:
        values = values < 0
    if kind == "sorted":
        values = np.arange(n) * 100 // max(n, 1)
    if kind == "definite":
        row, column = np.mgrid[:shape[-2], :shape[-1]]
        values = np.where(row == column, 2.0, 1.0 / (2 + abs(row - column) * shape[-1]))
    return tf.cast(tf.constant(values.reshape(shape)), dtype)


def attribute(kind, text):
    if kind == "type":
        return tf.as_dtype(text)
    if kind in ("int", "float", "bool"):
        return {"int": int, "float": float, "bool": lambda t: t == "true"}[kind](text)
    if kind == "list(int)" or kind == "list(float)":
        return eval(text)  # pylint: disable=eval-used
    return text


def call_of(line):
    pieces = [p.strip() for p in line.split(";")]
    name, *attrs = pieces[0].split()
    definition = op_def_registry.get(name)
    if definition is None:
        raise LookupError("TensorFlow has no such op")
    kinds = {a.name: a.type for a in definition.attr}
    op = getattr(tf.raw_ops, name)
    # Python calls some inputs otherwise than the op does: the arguments that are left, in their order.
    parameters = tf_inspect.getfullargspec(op).args
    inputs = {a.name for a in definition.input_arg}
    others = [p for p in parameters if p not in inputs and p not in kinds and p != "name"]
    arguments = {}
    for text in attrs:
        key, _, value = text.partition("=")
        arguments[key] = attribute(kinds[key], value)
    for arg, text in zip(definition.input_arg, pieces[1:]):
        one, _, count = text.partition("*")
        is_list = arg.number_attr or arg.type_list_attr
        argument = arg.name if arg.name in parameters else others.pop(0)
        arguments[argument] = [tensor(one) for _ in range(int(count or 1))] if is_list else tensor(one)
    return lambda: op(**arguments)


# As bench::measure: a warm-up of a quarter of the time, then the median of batches that are long enough for the clock;
# long calls are made three times.
def median_seconds(call, seconds):
    def timed(count):
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count

    call()
    once = timed(1)
    is_long = once > 0.1
    batch = max(1, min(100000, int(2e-3 / once)))
    end = time.perf_counter() + seconds / 4
    while not is_long and time.perf_counter() < end:
        call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < (3 if is_long else 5) or (time.perf_counter() < end and len(times) < 1000):
        times.append(timed(batch))
    return sorted(times)[len(times) // 2]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(args.threads)
    for line in sys.stdin:
        try:
            print(f"{median_seconds(call_of(line.strip()), args.seconds):.9e}", flush=True)
        except Exception as error:  # pylint: disable=broad-except  # whatever TensorFlow says of a call
            print("error " + (str(error).splitlines() or [repr(error)])[0][:200], flush=True)


main()
