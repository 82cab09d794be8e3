#!/usr/bin/python3
"""Writes data/numpy_cases.txt: arrays and the text NumPy prints for them (made with NumPy 1.24).

One case per line, fields apart by tabs:
  str|repr  dtype  dims  precision,threshold,edgeitems,linewidth,suppress  step  pool  expected
Element i of the array is pool[(i * step) % len(pool)]. The pool is hexadecimal: the little-endian bytes of
the elements, or for strings the bytes of each, apart by commas. In the expected text a newline is written \\n
and a backslash \\\\. A line "half16" holds the FNV-1a hash of the str of all 65536 float16 scalars, newlines
between.
"""
import random
import sys

import numpy as np

rng = random.Random(20240607)


class BFloat16(float):
    """TensorFlow's bfloat16 scalars write themselves as C++ streams write floats."""

    def __repr__(self):
        return "nan" if self != self else "%g" % self

    __str__ = __repr__


FLOATS = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
COMPLEX = {"complex64": (np.complex64, "float32"), "complex128": (np.complex128, "float64")}
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def random_float(kind, dtype):
    if kind == "unit":
        return rng.random()
    if kind == "normal":
        return rng.gauss(0, 1)
    if kind == "whole":
        return float(rng.randint(-9, 9))
    if kind == "big whole":
        return float(rng.randint(-2000, 200000))
    if kind == "decimal":
        return round(rng.uniform(-100, 100), rng.randint(0, 4))
    if kind == "eighths":
        return rng.randint(-40, 40) / 8
    if kind == "wide":
        return rng.choice([-1, 1]) * 10 ** rng.uniform(-12, 12)
    if kind == "narrow":
        return rng.choice([-1, 1]) * 10 ** rng.uniform(-5, 5)
    if kind == "edges":
        return rng.choice([1e-4, 0.00011, 9.9e-5, 1e8, 99999999.0, 1e5, 1e-5, 1000.0, 1.0, 1001.0, 0.1, 0.0,
                           9.9999999996, 1e16, 123456789.0, 0.5, 2.5, 1.123456785, 1 / 3, 2 / 3, 1e-8])
    if kind == "huge":
        return rng.choice([-1, 1]) * 10 ** rng.uniform(-300, 300)
    if kind == "tiny":
        return rng.choice([-1, 1]) * 10 ** rng.uniform(-323, -280)
    if kind == "zero":
        return rng.choice([0.0, -0.0, 0.0, 1.0])
    if kind == "bits":
        size = np.dtype(dtype).itemsize
        return np.frombuffer(rng.getrandbits(8 * size).to_bytes(size, "little"), dtype)[0]
    raise ValueError(kind)


KINDS = ["unit", "normal", "whole", "big whole", "decimal", "eighths", "wide", "narrow", "edges", "huge", "tiny",
         "zero", "bits"]


def float_pool(dtype, n):
    kind = rng.choice(KINDS)
    special = rng.random()
    with np.errstate(all="ignore"):
        values = [random_float(kind, dtype) for _ in range(n)]
        if special < 0.25:
            for i in range(n):
                if rng.random() < 0.3:
                    values[i] = rng.choice([np.nan, np.inf, -np.inf] if special < 0.12 else
                                           [np.nan] if special < 0.18 else [np.inf])
        if kind == "zero" and rng.random() < 0.3:
            values = [np.nan] * n
        return np.array(values, dtype)


def int_pool(dtype, n):
    info = np.iinfo(dtype)
    kind = rng.randint(0, 3)
    if kind == 0:
        low, high = max(info.min, -9), 9
    elif kind == 1:
        low, high = max(info.min, -120), min(info.max, 1000)
    elif kind == 2:
        low, high = 0, min(info.max, 123456)
    else:
        low, high = int(info.min), int(info.max)
    values = [rng.randint(low, high) for _ in range(n)]
    if rng.random() < 0.1:
        values[0] = int(info.max)
        values[-1] = int(info.min)
    return np.array(values, dtype)


def string_pool(n):
    kind = rng.randint(0, 3)
    result = []
    for _ in range(n):
        if kind == 0:
            word = rng.choice([b"a", b"bc", b"", b"hello", b"runnel", b"x y"])
        elif kind == 1:
            word = bytes(rng.choice(b"ab'\"\\\n\t\r\x00\x7f\xff ~") for _ in range(rng.randint(0, 6)))
        elif kind == 2:
            word = "gr\u00fc\u00df".encode() * rng.randint(0, 3)
        else:
            word = b"w" * rng.randint(0, 90 if rng.random() < 0.05 else 12)
        result.append(word)
    return result


def make_pool(name, n):
    """The values, the hexadecimal text and the maker of an array of them."""
    if name in FLOATS:
        pool = float_pool(FLOATS[name], n)
    elif name in COMPLEX:
        dtype, part = COMPLEX[name]
        pool = np.empty(n, dtype)
        pool.real = float_pool(FLOATS[part], n)
        pool.imag = float_pool(FLOATS[part], n)
    elif name == "bool":
        pool = np.array([rng.random() < (0.5 if n % 7 else 1.0) for _ in range(n)], np.bool_)
    elif name == "string":
        words = string_pool(n)
        pool = np.empty(n, object)
        pool[:] = words
        return pool, ",".join(word.hex() for word in words)
    elif name == "bfloat16":
        with np.errstate(all="ignore"):
            bits = float_pool(np.float32, n).view(np.uint32) >> 16
            pool = np.empty(n, object)
            pool[:] = [BFloat16(x) for x in (bits << 16).astype(np.uint32).view(np.float32)]
        return pool, bits.astype("<u2").tobytes().hex()
    else:
        pool = int_pool(np.dtype(name).type, n)
    return pool, pool.tobytes().hex()


def random_dims():
    rank = rng.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5])
    limit = {0: 1, 1: 24, 2: 6, 3: 3, 4: 3, 5: 2}[rank]
    dims = [rng.randint(1, limit) for _ in range(rank)]
    if rank and rng.random() < 0.03:
        dims[rng.randrange(rank)] = 0
    return dims


def large_dims():
    return rng.choice([[1001], [5000], [40, 40], [7, 300], [6, 200], [400, 3], [2, 3, 400], [20, 20, 20],
                       [1, 1200], [2000, 1], [5, 6, 7, 8], [11, 1, 200], [1001, 1, 1]])


def emit(out, form, name, dims, options, pool_size):
    size = int(np.prod(dims))
    pool, text = make_pool(name, max(1, min(pool_size, size)))
    step = 1 if size <= len(pool) else rng.choice([1, 3, 7])
    array = pool[(np.arange(size) * step) % len(pool)].reshape(dims)
    precision, threshold, edge, width, suppress = options
    with np.printoptions(precision=precision, threshold=threshold, edgeitems=edge, linewidth=width,
                         suppress=bool(suppress)):
        expected = str(array) if form == "str" else repr(array)
    expected = expected.replace("\\", "\\\\").replace("\n", "\\n")
    fields = [form, name, ",".join(map(str, dims)), ",".join(map(str, options)), str(step), text, expected]
    out.write("\t".join(fields) + "\n")


def main(path):
    names = list(FLOATS) * 4 + list(COMPLEX) * 2 + INTS + ["bool", "string", "string", "bfloat16"]
    default = (8, 1000, 3, 75, 0)
    with open(path, "w", newline="\n") as out:
        text = "\n".join(str(x) for x in np.arange(65536).astype(np.uint16).view(np.float16))
        code = 0xCBF29CE484222325
        for byte in text.encode():
            code = ((code ^ byte) * 0x100000001B3) % 2**64
        out.write("half16\t%d\n" % code)
        for _ in range(2200):
            name = rng.choice(names)
            form = "str" if name == "bfloat16" or rng.random() < 0.7 else "repr"
            emit(out, form, name, random_dims(), default, 64)
        emit(out, "str", "float32", [1000], default, 13)
        for _ in range(200):
            name = rng.choice(names)
            form = "str" if name == "bfloat16" or rng.random() < 0.7 else "repr"
            emit(out, form, name, large_dims(), default, 13)
        for _ in range(200):
            name = rng.choice(names)
            form = "str" if name == "bfloat16" or rng.random() < 0.7 else "repr"
            options = (rng.randint(0, 12), rng.choice([1, 5, 20, 1000]), rng.randint(1, 4),
                       rng.choice([20, 40, 75, 120]), rng.randint(0, 1))
            emit(out, form, name, random_dims(), options, 64)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else __file__.rsplit("/", 1)[0] + "/data/numpy_cases.txt")
