"""Two results of one call: where they differ, in words that group well."""
import numpy as np

# Two results of a dtype agree when |ours - theirs| <= relative * |theirs| + of_largest * (the largest finite |theirs|).
TOLERANCES = {  # dtype: relative, of_largest
    "float64": (1e-10, 1e-12),
    "float32": (1e-5, 1e-6),
    "float16": (2e-3, 1e-3),
    "bfloat16": (1.6e-2, 8e-3),
}
TOLERANCES["complex128"] = TOLERANCES["float64"]
TOLERANCES["complex64"] = TOLERANCES["float32"]
LARGEST = {"float32": 3.4028235e38, "complex64": 3.4028235e38, "float16": 65504.0, "bfloat16": 3.39e38}
# Numbers below the smallest normal one count as zero in kernels, ours and TensorFlow's.
SMALLEST = {"float64": 2.3e-308, "float32": 1.2e-38, "float16": 6e-8, "bfloat16": 1.2e-38, "complex64": 1.2e-38,
            "complex128": 2.3e-308}


def inexact(dtype):
    return dtype in TOLERANCES


def coarser(a, b):
    return b if b in TOLERANCES and TOLERANCES[b] > TOLERANCES[a] else a


def wide(a):
    return np.asarray(a, dtype=np.complex128 if np.iscomplexobj(a) else np.float64)


def parts(a):
    """Real numbers: a complex one is two."""
    return np.stack([a.real, a.imag], -1) if np.iscomplexobj(a) else a


def largest(a):
    finite = np.abs(a[np.isfinite(a)])
    return finite.max() if finite.size else 0.0


def float_difference(dtype, ours, theirs, scale=0.0):
    """None, or (reason, detail). What the numbers are made of is as large as `scale`."""
    a, b = wide(ours), wide(theirs)
    if np.iscomplexobj(a):
        # Which part of a complex number that is not finite is NaN and which infinite depends on the compiler.
        lost = ~np.isfinite(a) & ~np.isfinite(b)
        a, b = np.where(lost, 0, a), np.where(lost, 0, b)
    a, b = parts(a), parts(b)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        at = np.argwhere(np.isnan(a) != np.isnan(b))[0]
        return "NaN", f"at {at.tolist()}: {a[tuple(at)]!r} here, {b[tuple(at)]!r} in TensorFlow"
    relative, of_largest = TOLERANCES[dtype]
    with np.errstate(invalid="ignore", over="ignore"):
        limit = relative * np.abs(b) + of_largest * max(largest(b), scale) + SMALLEST[dtype]
        same = (a == b) | np.isnan(a) | (np.abs(a - b) <= np.where(np.isfinite(limit), limit, 0))
    if same.all():
        return None
    at = tuple(np.argwhere(~same)[0])
    where = [int(i) for i in at]
    kind = "values" if np.isfinite(a[at]) and np.isfinite(b[at]) else "infinity"
    return kind, f"at {where}: {a[at]!r} here, {b[at]!r} in TensorFlow ({int((~same).sum())} of {same.size})"


def difference(ours, theirs, numbers=True, narrowest=None, scale=0.0):
    """None, or (reason, detail). `ours` and `theirs` have "d", "s" and the elements as "a"; lists have "list".
    The tolerance is that of `narrowest`, the narrowest float among the inputs, where there is one."""
    if "list" in ours or "list" in theirs:
        return list_difference(ours, theirs)
    if "handle" in ours or "handle" in theirs:
        return None if ours == theirs else ("handle", f"{ours} here, {theirs} in TensorFlow")
    if "table" in ours:
        return table_difference(ours["table"], theirs["table"])
    if ours["d"] != theirs["d"]:
        return "dtype", f"{ours['d']} here, {theirs['d']} in TensorFlow"
    if ours["s"] != theirs["s"]:
        return "shape", f"{ours['s']} here, {theirs['s']} in TensorFlow"
    if not numbers:
        return None
    a, b = ours["a"], theirs["a"]
    if inexact(ours["d"]):
        return float_difference(coarser(ours["d"], narrowest), a, b, scale)
    different = np.argwhere(np.asarray(a != b))
    if not different.size and a.shape == b.shape and np.array_equal(a, b):
        return None
    at = tuple(different[0])
    where = [int(i) for i in at]
    return "values", f"at {where}: {a[at]!r} here, {b[at]!r} in TensorFlow ({len(different)} of {a.size})"


def list_difference(ours, theirs):
    if "list" not in ours or "list" not in theirs:
        return "handle", f"{sorted(ours)} here, {sorted(theirs)} in TensorFlow"
    a, b = ours["list"], theirs["list"]
    if a["dtype"] != b["dtype"]:
        return "dtype", f"items of {a['dtype']} here, of {b['dtype']} in TensorFlow"
    if len(a["items"]) != len(b["items"]):
        return "shape", f"{len(a['items'])} items here, {len(b['items'])} in TensorFlow"
    if a["shape"] != b["shape"]:
        return "shape", f"items of shape {a['shape']} here, {b['shape']} in TensorFlow"
    for i, (x, y) in enumerate(zip(a["items"], b["items"])):
        if x is None or y is None:
            continue  # TensorFlow reads what nobody wrote as zeros
        found = difference(x, y)
        if found:
            return found[0], f"item {i}, {found[1]}"
    return None


def table_difference(ours, theirs):
    def rows(table):
        keys, values = table[0]["a"], table[1]["a"]
        found = list(map(repr, zip(keys.tolist(), values.tolist())))
        return found if keys.ndim == 2 else sorted(found)  # the buckets of a dense table have their places

    a, b = rows(ours), rows(theirs)
    if a == b:
        return None
    return "values", f"{a} here, {b} in TensorFlow"


# ---- results that are not unique


def transposed(a):
    return np.conj(np.swapaxes(a, -1, -2))


def product(name, out):
    """What a decomposition is the decomposition of, as far as it goes."""
    if name == "Svd":
        s, u, v = out
        n = s.shape[-1]
        return (u[..., :n] * s[..., None, :]) @ transposed(v[..., :n])
    if name == "Qr":
        return out[0] @ out[1]
    return (out[1] * out[0][..., None, :]) @ transposed(out[1])


def other_vectors(name, ours, theirs):
    """Are these two decompositions of one matrix? Signs of vectors, and bases of equal values, are left open."""
    if name not in ("Svd", "Qr", "SelfAdjointEigV2") or any(a["s"] != b["s"] for a, b in zip(ours, theirs)):
        return False
    first = difference(ours[0], theirs[0]) if name != "Qr" else None
    a, b = ([wide(t["a"]) for t in out] for out in (ours, theirs))
    if first or any(x.size == 0 or not np.isfinite(x).all() for x in a + b):
        return False
    tolerance = 100 * max(TOLERANCES[t["d"]][0] for t in ours)
    for v in ([a[1], a[2]] if name == "Svd" else [a[0]] if name == "Qr" else [a[1]]):
        if not np.allclose(transposed(v) @ v, np.eye(v.shape[-1]), atol=tolerance):
            return False
    x, y = product(name, a), product(name, b)
    return np.allclose(x, y, rtol=tolerance, atol=tolerance * max(1.0, largest(y)))


def nearer(dtype, ours, theirs, exact):
    """Is our result at least about as near to that of a wider dtype as TensorFlow's own?"""
    a, b, e = (parts(wide(x)) for x in (ours, theirs, exact))
    if a.shape != e.shape:
        return False
    limit = LARGEST.get(dtype, np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        e = np.where(np.abs(e) > limit, np.sign(e) * np.inf, e)
        if not np.array_equal(np.isnan(a), np.isnan(e)):
            return False
        if float_difference(dtype, a, e) is None:
            return True
        finite = np.isfinite(e) & np.isfinite(a)
        if not np.array_equal(a[~finite & ~np.isnan(a)], e[~finite & ~np.isnan(a)]):
            return False
        mine, its = np.abs(a - e)[finite], np.abs(b - e)[finite]
    return bool((mine.max(initial=0) <= 2 * np.nan_to_num(its, nan=np.inf).max(initial=0)))


def within_scatter(ours, theirs, others):
    """Do we differ from TensorFlow no more than it differs from itself for inputs a rounding away? Only small
    differences count: at a jump everything is near everything."""
    if not others:
        return False
    a, b = parts(wide(ours)), parts(wide(theirs))
    apart = np.zeros_like(b)
    with np.errstate(invalid="ignore", over="ignore"):
        for other in others:
            if np.shape(other) != np.shape(theirs):
                return False
            apart = np.maximum(apart, np.abs(parts(wide(other)) - b))
        mine = np.abs(a - b)
    if not (np.isfinite(mine).all() and np.isfinite(apart).all()):
        return False
    return bool((mine <= 4 * apart.max(initial=0)).all() and mine.max(initial=0) < 1e-3)
