"""Does the judge find what is wrong? Calls whose answers are TensorFlow's own, changed in one thing."""
import sys

import numpy as np

import tensorflow_calls as calls
import verdict
from decisions import Decision
from op_defs import Comparison


def tensor(values, dtype="float32"):
    a = np.asarray(values, dtype=calls.numpy_dtype(dtype))
    return {"d": dtype, "s": list(a.shape), "x": a.tobytes().hex()}


def case(op, *inputs, **attrs):
    return {"op": op, "id": "s0", "inputs": [[f"input_{i}", [t]] for i, t in enumerate(inputs)], "attrs": attrs}


ONE, TWO = tensor([1, 2]), tensor([3, 4])
MUL = case("Mul", ONE, TWO)
GOOD = {"out": [tensor([3, 8])], "sources": [0, 1], "dy": [tensor([1, 1])], "grads": [TWO, ONE]}
VARIABLE = case("AssignAddVariableOp", {"variable": ONE}, TWO, dtype="float32")
ERROR = {"error": {"code": 3, "text": "no"}}
MISFIT = case("Mul", ONE, tensor([1, 2, 3]))
DRAW = case("RandomUniform", tensor([2], "int32"), dtype="float32", seed=0, seed2=0)

EXPECTED = [  # call, answer, what the judge must say
    (MUL, GOOD, "agree"),
    (MUL, {**GOOD, "out": [tensor([3.00001, 8])]}, "agree"),
    (MUL, {**GOOD, "out": [tensor([3, 8.01])]}, "values"),
    (MUL, {**GOOD, "out": [tensor([3, np.nan])]}, "NaN"),
    (MUL, {**GOOD, "out": [tensor([3, np.inf])]}, "infinity"),
    (MUL, {**GOOD, "out": [tensor([[3, 8]])]}, "shape"),
    (MUL, {**GOOD, "out": [tensor([3, 8], "float64")]}, "dtype"),
    (MUL, {**GOOD, "out": []}, "number of outputs"),
    (MUL, {**GOOD, "grads": [ONE, ONE]}, "gradient, values"),
    (MUL, {**GOOD, "grads": [None, ONE]}, "gradient in TensorFlow only"),
    (MUL, {**GOOD, "grads": ERROR}, "gradient: we refuse"),
    (case("Floor", ONE), {"out": [ONE], "sources": [0], "dy": [ONE], "grads": [ONE]}, "gradient here only"),
    (MUL, ERROR, "we refuse"),
    (MISFIT, ERROR, "agree"),
    (MISFIT, {"out": [ONE]}, "TensorFlow refuses"),
    (MUL, {"crash": "Segmentation fault", "stage": "the call"}, "crash"),
    (MUL, {"foreign": "std::length_error"}, "foreign exception"),
    (case("_NoSuchOp", ONE), GOOD, "no such call in TensorFlow: no such op"),
    (VARIABLE, {"out": [], "after": [tensor([4, 6])]}, "agree"),
    (VARIABLE, {"out": [], "after": [ONE]}, "state, values"),
    (DRAW, {"out": [tensor([7, 7])]}, "agree"),
    (DRAW, {"out": [tensor([7])]}, "shape"),
    ({**DRAW, "attrs": {**DRAW["attrs"], "seed": 5}}, {"out": [tensor([7, 7])]}, "random numbers"),
    # Where rounding takes everything, the answer of a wider type decides.
    (case("Sum", tensor([2048] + [0.5] * 64, "float16"), tensor([0], "int32"), keep_dims=False),
     {"out": [tensor([2080], "float16")]}, "shape"),
    (case("Sum", tensor([2048] + [0.5] * 64, "float16"), tensor([0], "int32"), keep_dims=False),
     {"out": [tensor(2080, "float16")]}, "agree"),
]


def main():
    failures = []
    for number, (call, answer, expected) in enumerate(EXPECTED):
        found = verdict.judge(call, answer)
        said = found["reason"] or found["status"]
        if said != expected:
            failures.append(f"{number}: {call['op']}: '{said}', expected '{expected}' ({found['detail']})")
    found = {"reason": "values", "detail": ""}
    for text, covered in (("any(x[0] == np.float32(3) for x in inputs)", True), ("dtypes[0] == 'float16'", False),
                          ("no_such_name", False)):
        if Decision("M*", "values", text, "").covers(MUL, found) != covered:
            failures.append(f"decision '{text}'")
    pool = case("MaxPool", ONE, padding="SAME".encode().hex())
    pool["inputs"].append(["inputs", [TWO]])
    if not Decision("*", "values", "padding == 'SAME' and inputs[0] == 3 and dtypes[1] == 'float32'", "").covers(pool, found):
        failures.append("decision by texts and an input named inputs")
    ours = {"name": "LeakyRelu", "stateful": False, "inputs": [{"name": "x", "type_attr": "T", "list": False}],
            "outputs": [{"name": "activations", "type_attr": "T", "list": False}],
            "attributes": [{"name": "alpha", "type": "float", "default": 0.3},
                           {"name": "T", "type": "type", "default": "float32", "allowed": ["float32", "int8"]}]}
    kinds = {kind for _, kind, _ in Comparison(ours).run({"float32", "float64", "int8"})}
    if kinds != {"inputs", "default", "types missing here", "types here only"}:
        failures.append(f"definitions: {kinds}")
    ours = {"name": "Conv3D", "stateful": False, "inputs": [], "outputs": [],
            "attributes": [{"name": "padding", "type": "string", "allowed": ["SAME"]},
                           {"name": "strides", "type": "list(int)", "minimum": 4}]}
    kinds = {kind for _, kind, _ in Comparison(ours).run({"float32"})}
    if kinds != {"inputs", "outputs", "attribute missing here", "allowed values", "minimum"}:
        failures.append(f"rules of definitions: {kinds}")
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
