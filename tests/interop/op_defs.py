"""Our op definitions beside TensorFlow's: names, inputs, outputs, attributes, their types, defaults and allowed values.

No differences are: types that TensorFlow's definition lists and none of its kernels takes on the CPU, and attributes
whose names begin with an underscore, which any node may have."""
import functools
import json
import subprocess

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels

from tensorflow_calls import default_value, op_def

# Kinds of difference, the graver first.
KINDS = ["inputs", "outputs", "attribute missing here", "attribute here only", "attribute type", "default",
         "default here only", "default in TensorFlow only", "types missing here", "types here only", "stateful",
         "allowed values", "minimum"]


def our_definitions(program):
    done = subprocess.run([program, "ops", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def dtype_name(number):
    return tf.as_dtype(number).name if number else ""


@functools.lru_cache(maxsize=None)
def cpu_kernels(op):
    """By kernel: {attribute: the types that it is for}."""
    found = kernels.get_registered_kernels_for_op(op).kernel
    return [{c.name: {dtype_name(t) for t in c.allowed_values.list.type} for c in k.constraint}
            for k in found if k.device_type == "CPU"]


def computed_types(op, attribute, types):
    """Those of the types that some kernel takes; all of them for ops that the runtime runs without one."""
    if not cpu_kernels(op):
        return types
    return set().union(*(types & kernel.get(attribute, types) for kernel in cpu_kernels(op)))


def their_arg(arg):
    """An input or output in words: name, type or the attribute that has it, how many."""
    kind = arg.type_attr or arg.type_list_attr or dtype_name(arg.type)
    count = f" * {arg.number_attr}" if arg.number_attr else " * its length" if arg.type_list_attr else ""
    return f"{arg.name}: {kind}{count}"


def our_arg(arg):
    kind = arg.get("type_attr") or arg["type"]
    count = f" * {arg['number_attr']}" if arg.get("number_attr") else " * its length" if arg["list"] else ""
    return f"{arg['name']}: {kind}{count}"


def plain(kind, value):
    """A default as JSON has it in our listing."""
    if kind.startswith("list("):
        return [plain(kind[5:-1], v) for v in value]
    if kind == "string":
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if kind == "type":
        return dtype_name(value)
    if kind == "shape":
        return None if value.rank is None else [-1 if d is None else d for d in value.as_list()]
    if kind == "tensor":
        array = tf.make_ndarray(value)
        return {"dtype": array.dtype.name, "shape": list(array.shape), "values": array.reshape(-1).tolist()}
    return value


def same_default(kind, ours, theirs):
    if kind == "float":
        return np.float32(float(ours)) == np.float32(theirs)
    if kind == "list(float)":
        return len(ours) == len(theirs) and all(same_default("float", a, b) for a, b in zip(ours, theirs))
    return ours == theirs


class Comparison:
    def __init__(self, ours):
        self.name = ours["name"]
        self.ours = ours
        self.theirs = op_def(self.name)
        self.known_types = set()
        self.found = []

    def add(self, kind, text):
        self.found.append((self.name, kind, text))

    def run(self, known_types):
        self.known_types = known_types
        for kind, mine, its in (("inputs", self.ours["inputs"], self.theirs.input_arg),
                                ("outputs", self.ours["outputs"], self.theirs.output_arg)):
            a, b = [our_arg(x) for x in mine], [their_arg(x) for x in its]
            if a != b:
                self.add(kind, f"({', '.join(a)}) here, ({', '.join(b)}) in TensorFlow")
        mine = {a["name"]: a for a in self.ours["attributes"]}
        its = {a.name: a for a in self.theirs.attr}
        for name, attr in its.items():
            if name in mine:
                self.attribute(mine[name], attr)
            else:
                self.add("attribute missing here", f"{name}: {attr.type}")
        for name, attr in mine.items():
            if name not in its and not name.startswith("_"):
                self.add("attribute here only", f"{name}: {attr['type']}")
        if bool(self.ours["stateful"]) != self.theirs.is_stateful:
            self.add("stateful", f"{self.ours['stateful']} here, {self.theirs.is_stateful} in TensorFlow")
        return self.found

    def attribute(self, mine, its):
        name = its.name
        if mine["type"] != its.type:
            self.add("attribute type", f"{name}: {mine['type']} here, {its.type} in TensorFlow")
            return
        if its.HasField("default_value"):
            theirs = plain(its.type, default_value(its.type, its.default_value))
            if "default" not in mine:
                self.add("default in TensorFlow only", f"{name} = {theirs!r}")
            elif not same_default(its.type, mine["default"], theirs):
                self.add("default", f"{name} = {mine['default']!r} here, {theirs!r} in TensorFlow")
        elif "default" in mine:
            self.add("default here only", f"{name} = {mine['default']!r}")
        self.allowed(name, mine, its)
        # A list is never shorter than empty: TensorFlow says so of some.
        least = its.minimum if its.has_minimum and (its.minimum > 0 or its.type == "int") else None
        if mine.get("minimum") != least:
            self.add("minimum", f"{name}: {mine.get('minimum', 'none')} here, "
                                f"{'none' if least is None else least} in TensorFlow")

    def allowed(self, name, mine, its):
        allowed = its.allowed_values.list
        if its.type in ("type", "list(type)"):
            theirs = {dtype_name(t) for t in allowed.type} & self.known_types or set(self.known_types)
            ours = set(mine.get("allowed", self.known_types))
            missing = computed_types(self.theirs.name, name, theirs - ours) if its.type == "type" else theirs - ours
            if missing:
                self.add("types missing here", f"{name}: {', '.join(sorted(missing))}")
            if ours - theirs:
                self.add("types here only", f"{name}: {', '.join(sorted(ours - theirs))}")
        elif set(mine.get("allowed", [])) != {s.decode() for s in allowed.s}:
            theirs = ", ".join(s.decode() for s in allowed.s)
            self.add("allowed values", f"{name}: {', '.join(mine.get('allowed', []))} here, {theirs} in TensorFlow")


def compare(ours):
    """[(op, kind, text)], and the names of the ops that TensorFlow has not."""
    known = {t for op in ours for a in op["attributes"] if "type" in a["type"] for t in a.get("allowed", [])}
    found, absent = [], []
    for op in ours:
        if op_def(op["name"]) is None:
            absent.append(op["name"])
        for name in [op["name"], *op["aliases"]]:
            if op_def(name) is not None:
                found += Comparison({**op, "name": name}).run(known)
    return found, absent
