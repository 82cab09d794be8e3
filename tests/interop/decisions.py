"""What is known to differ: decided for good in docs/differences.md, or yet to be mended in open.tsv."""
import fnmatch
import re

import numpy as np

from tensorflow_calls import array, op_def


def windows(x, ksize, strides, padding):
    """The windows of pooling, in an array of arrays; None where there are none."""
    if padding not in ("SAME", "VALID") or len(ksize) != x.ndim:
        return None
    x = x.astype(np.float64)
    starts = []
    for n, k, s in zip(x.shape, ksize, strides):
        out = -(-n // s) if padding == "SAME" else (n - k + s) // s
        before = max(0, (out - 1) * s + k - n) // 2 if padding == "SAME" else 0
        starts.append([(max(0, i * s - before), i * s - before + k) for i in range(out)])
    all_of_them = np.empty(tuple(len(s) for s in starts), dtype=object)
    for at in np.ndindex(all_of_them.shape):
        all_of_them[at] = x[tuple(slice(*starts[d][i]) for d, i in enumerate(at))]
    return all_of_them


def pooled(x, y, ksize, strides, padding):
    """Is y the largest elements of the windows of x? (A window that is all NaN or too large is no matter here.)"""
    parts = windows(x, ksize, strides, padding)
    if parts is None or y.shape != parts.shape:
        return True
    y = y.astype(np.float64)
    return all(y[at] == parts[at].max(initial=-np.inf) for at in np.ndindex(y.shape))


def tied(x, ksize, strides, padding):
    """Has a window of x several largest elements?"""
    parts = windows(x, ksize, strides, padding)
    return parts is not None and any((w == w.max(initial=-np.inf)).sum() > 1 for w in parts.ravel())


class Names(dict):
    """The names that the expression of a decision may use."""

    def __init__(self, case, found):
        super().__init__()
        self.update(np=np, pooled=pooled, tied=tied, how=case.get("how", ""), detail=found["detail"], id=case["id"])
        definition = op_def(case["op"])
        texts = {a.name for a in definition.attr if a.type == "string"} if definition else set()
        for name, value in case["attrs"].items():
            self[name] = bytes.fromhex(value).decode("utf-8", "replace") if name in texts else value
        self["inputs"] = inputs = []
        for name, tensors in case["inputs"]:
            values = [array(t) if "d" in t else array(t["variable"]) if "variable" in t else t for t in tensors]
            inputs += values
            self[name] = values[0] if len(values) == 1 else values  # CTCLoss has an input named inputs
        arrays = [x for x in inputs if isinstance(x, np.ndarray)]
        floats = [x for x in arrays if x.dtype.kind in "fcV"]
        self["has_nan"] = any(np.isnan(x.astype(np.complex128)).any() for x in floats)
        self["has_inf"] = any(np.isinf(x.astype(np.complex128)).any() for x in floats)
        self["has_empty"] = any(x.size == 0 for x in arrays)
        self["dtypes"] = [x.dtype.name for x in arrays]


class Decision:
    def __init__(self, ops, reason, cases, why):
        self.ops = [o.strip() for o in ops.split(",")]
        self.reason = reason
        self.why = why
        self.text = cases
        self.cases = None if cases == "all" else compile(cases, f"docs/differences.md: {cases}", "eval")
        self.used = 0

    def covers(self, case, found):
        if not any(fnmatch.fnmatchcase(case["op"], op) for op in self.ops):
            return False
        if not fnmatch.fnmatchcase(found["reason"], self.reason):
            return False
        if self.cases is None:
            return True
        try:
            with np.errstate(all="ignore"):
                return bool(eval(self.cases, Names(case, found)))  # pylint: disable=eval-used  # of our own file
        except Exception:  # pylint: disable=broad-except  # a name that this case has not
            return False


def read_decisions(path):
    """The rows of the tables: | `ops` | reason | all or `expression` | why |"""
    decisions = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = re.match(r"\| `([^`]+)` \| ([^|]+) \| (all|`[^`]+`) \| (.+) \|$", line.strip())
            if row:
                ops, reason, cases, why = row.groups()
                decisions.append(Decision(ops, reason.strip(), cases.strip("`"), why))
    return decisions


class Open:
    """Pairs of op and reason that are known and not yet mended."""

    HEADER = ("# What TensorFlow and Runnel answer differently and nobody has mended or decided yet: op, reason.\n"
              "# scripts/check interop rewrites it with --write-open; a line that is new fails ./test.\n")

    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.pairs = {tuple(line.rstrip("\n").split("\t")) for line in file if line.strip() and line[0] != "#"}
        self.used = set()

    def has(self, op, reason):
        if (op, reason) not in self.pairs:
            return False
        self.used.add((op, reason))
        return True

    def write(self, pairs):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.HEADER)
            for op, reason in sorted(set(pairs)):
                file.write(f"{op}\t{reason}\n")
