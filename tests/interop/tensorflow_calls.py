"""The calls that interop_driver wrote, run by TensorFlow the way tf.raw_ops runs them: eagerly, by the op's name."""
import itertools
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Eigen's kernels, not oneDNN's: those are the ones that define what an op means.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context, execute  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402


_numbers = itertools.count()


class Unfit(Exception):
    """The call cannot be told to TensorFlow: its op has no such input or attribute."""


def op_def(name):
    return op_def_registry.get(name)


def numpy_dtype(name):
    return tf.as_dtype(name).as_numpy_dtype


def array(t):
    """A tensor of a file as an array; of strings, an array of bytes objects."""
    if t["d"] == "string":
        flat = np.empty(len(t["x"]), dtype=object)
        for i, x in enumerate(t["x"]):
            flat[i] = bytes.fromhex(x)
        return flat.reshape(t["s"])
    return np.frombuffer(bytes.fromhex(t["x"]), dtype=numpy_dtype(t["d"])).reshape(t["s"])


def tensor(t):
    if t["d"] == "string":
        # Not through an array: NumPy would cut bytes that end in zero.
        flat = [bytes.fromhex(x) for x in t["x"]]
        return tf.reshape(tf.constant(flat, dtype=tf.string, shape=[len(flat)]), tf.constant(t["s"], tf.int64))
    return tf.convert_to_tensor(array(t), dtype=tf.as_dtype(t["d"]))


class Variable:
    """A variable as raw ops see it: a handle that knows no shape."""

    def __init__(self, t):
        value = tensor(t)
        self.dtype = value.dtype
        # Every call makes its own: a shared name would find the variable of the last one.
        self.handle = tf.raw_ops.VarHandleOp(dtype=self.dtype, shape=None, shared_name=context.anonymous_name())
        tf.raw_ops.AssignVariableOp(resource=self.handle, value=value)

    def value(self):
        return tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self.dtype)

    def state(self):
        return as_answer(self.value())


class Table:
    def __init__(self, contents, dense):
        keys, values = tensor(contents[0]), tensor(contents[1])
        self.dtypes = keys.dtype, values.dtype
        shape, name = values.shape[1:], f"interop_{next(_numbers)}"
        if dense:
            marks = [tf.constant(mark, tf.int64) for mark in (-7, -8)]
            self.handle = tf.raw_ops.MutableDenseHashTableV2(empty_key=marks[0], deleted_key=marks[1], shared_name=name,
                                                             value_dtype=values.dtype, value_shape=shape,
                                                             initial_num_buckets=4)
        elif shape.rank > 0:
            self.handle = tf.raw_ops.MutableHashTableOfTensorsV2(key_dtype=keys.dtype, value_dtype=values.dtype,
                                                                 value_shape=shape, shared_name=name)
        else:
            self.handle = tf.raw_ops.MutableHashTableV2(key_dtype=keys.dtype, value_dtype=values.dtype,
                                                        shared_name=name)
        tf.raw_ops.LookupTableInsertV2(table_handle=self.handle, keys=keys, values=values)

    def state(self):
        keys, values = tf.raw_ops.LookupTableExportV2(table_handle=self.handle, Tkeys=self.dtypes[0],
                                                      Tvalues=self.dtypes[1])
        return {"table": [as_answer(keys), as_answer(values)]}


def element_shape(shape):
    return tf.constant(-1 if shape is None else shape, tf.int32)


def make_list(j):
    dtype = tf.as_dtype(j["dtype"])
    shape = element_shape(j["shape"])
    if j["max"] >= 0:
        handle = tf.raw_ops.EmptyTensorList(element_shape=shape, max_num_elements=j["max"], element_dtype=dtype)
        for item in j["items"]:
            handle = tf.raw_ops.TensorListPushBack(input_handle=handle, tensor=tensor(item))
        return handle
    handle = tf.raw_ops.TensorListReserve(element_shape=shape, num_elements=len(j["items"]), element_dtype=dtype)
    for i, item in enumerate(j["items"]):
        if item is not None:
            handle = tf.raw_ops.TensorListSetItem(input_handle=handle, index=i, item=tensor(item))
    return handle


def list_answer(handle, dtype):
    """The items of a list, None where nobody wrote one and its shape is not known."""
    items = []
    for i in range(int(tf.raw_ops.TensorListLength(input_handle=handle))):
        try:
            item = tf.raw_ops.TensorListGetItem(input_handle=handle, index=i, element_shape=element_shape(None),
                                                element_dtype=dtype)
            items.append(as_answer(item))
        except (tf.errors.OpError, ValueError):
            items.append(None)
    shape = tf.raw_ops.TensorListElementShape(input_handle=handle, shape_type=tf.int32).numpy()
    return {"list": {"items": items, "dtype": dtype.name, "shape": None if shape.ndim == 0 else shape.tolist()}}


def as_answer(t, list_dtype=None):
    """A result as the driver writes results, with the elements as an array under "a"."""
    if isinstance(t, tf.IndexedSlices):
        t = tf.convert_to_tensor(t)
    if t.dtype == tf.variant:
        return list_answer(t, list_dtype) if list_dtype is not None else {"handle": "variant"}
    if t.dtype == tf.resource:
        return {"handle": "resource"}
    if t.dtype == tf.string:
        a = np.asarray(t.numpy(), dtype=object)
    else:
        a = t.numpy()
    return {"d": t.dtype.name, "s": t.shape.as_list(), "a": np.asarray(a)}


def attr_value(kind, value):
    """An attribute of a file as TFE_Py_Execute wants it."""
    if kind.startswith("list("):
        return [attr_value(kind[5:-1], v) for v in value]
    if kind == "string":
        return bytes.fromhex(value)
    if kind == "type":
        if value is None:
            raise Unfit("a type that is not set")
        return tf.as_dtype(value).as_datatype_enum
    if kind == "float":
        return float(value)
    if kind == "shape":
        return tf.TensorShape(value if value is None else [None if d == -1 else d for d in value])
    if kind == "tensor":
        return tf.make_tensor_proto(array(value), dtype=tf.as_dtype(value["d"]), shape=value["s"])
    if kind == "func":
        raise Unfit("a function")
    return value


def default_value(kind, value):
    if kind.startswith("list("):
        part = kind[5:-1]
        field = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape"}[part]
        return [tf.TensorShape(v) if part == "shape" else v for v in getattr(value.list, field)]
    if kind == "shape":
        return tf.TensorShape(value.shape)
    field = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "tensor": "tensor"}[kind]
    return getattr(value, field)


class Call:
    """One call, ready to run: flat inputs, attributes in pairs, the number of outputs."""

    def __init__(self, case):
        self.definition = op_def(case["op"])
        if self.definition is None:
            raise Unfit("no such op")
        self.state = []
        self.list_dtype = None
        self.inferred = {}
        given = {name: tensors for name, tensors in case["inputs"]}
        self.inputs = []
        order = [name for name, _ in case["inputs"]]
        for i, arg in enumerate(self.definition.input_arg):
            # Inputs go by their place: names are compared with the definitions.
            is_list = bool(arg.number_attr or arg.type_list_attr)
            name = arg.name if arg.name in given or is_list else (order[i] if i < len(order) else None)
            if name not in given and not is_list:
                raise Unfit(f"no input {arg.name}")
            tensors = [self.make(t) for t in given.pop(name, [])]
            self.infer(arg, tensors)
            self.inputs += tensors
        if given:
            raise Unfit("TensorFlow's op has no input " + ", ".join(given))
        self.attrs = self.attributes(case)
        self.num_outputs = sum(self.count(arg) for arg in self.definition.output_arg)

    def make(self, t):
        if "variable" in t:
            self.state.append(Variable(t["variable"]))
            return self.state[-1].handle
        if "table" in t:
            self.state.append(Table(t["table"], t["dense"]))
            return self.state[-1].handle
        if "list" in t:
            self.list_dtype = tf.as_dtype(t["list"]["dtype"])
            return make_list(t["list"])
        return tensor(t)

    def infer(self, arg, tensors):
        if arg.number_attr:
            self.inferred[arg.number_attr] = len(tensors)
        if arg.type_list_attr:
            self.inferred[arg.type_list_attr] = [t.dtype.as_datatype_enum for t in tensors]
        elif arg.type_attr and tensors:
            self.inferred.setdefault(arg.type_attr, tensors[0].dtype.as_datatype_enum)

    def attributes(self, case):
        values = {}
        known = {a.name for a in self.definition.attr}
        for a in self.definition.attr:
            if a.name in case["attrs"] and not (a.name in self.inferred and a.type == "type"):
                values[a.name] = attr_value(a.type, case["attrs"][a.name])
            elif a.name in self.inferred:
                values[a.name] = self.inferred[a.name]
            elif a.HasField("default_value"):
                values[a.name] = default_value(a.type, a.default_value)
            else:
                raise Unfit(f"no attribute {a.name}")
        self.unknown_attrs = [n for n in case["attrs"] if n not in known]
        if "element_dtype" in values and self.list_dtype is None:
            self.list_dtype = tf.as_dtype(values["element_dtype"])
        self.values = values
        return tuple(x for pair in values.items() for x in pair)

    def count(self, arg):
        if arg.number_attr:
            return self.values[arg.number_attr]
        if arg.type_list_attr:
            return len(self.values[arg.type_list_attr])
        return 1

    def run(self):
        if not 0 <= self.num_outputs < 10000:
            raise ValueError(f"{self.num_outputs} outputs")
        name = self.definition.name
        out = execute.execute(name.encode(), self.num_outputs, inputs=self.inputs, attrs=self.attrs,
                              ctx=context.context())
        out = out or []
        if execute.must_record_gradient():
            execute.record_gradient(name, self.inputs, self.attrs, out)
        return out

    def gradients(self, sources, dy):
        """By the inputs of these numbers; None where there is none."""
        by = [self.inputs[i] for i in sources]
        with tf.GradientTape() as tape:
            for x in by:
                tape.watch(x)
            of = [y for y in self.run() if y.dtype.is_floating or y.dtype.is_complex]
        return tape.gradient(of, by, output_gradients=[tensor(t) for t in dy])


def forget_kernels():
    """Random ops begin anew: TensorFlow keeps their generators with their kernels."""
    context.context().clear_kernel_cache()
