"""Judges one call: runs it in TensorFlow and says whether the answers agree, and if not, why."""
import numpy as np
import tensorflow as tf

import tensorflow_calls as calls
from comparison import TOLERANCES, difference, inexact, largest, nearer, other_vectors, within_scatter

AGREE, DISAGREE, APART = "agree", "disagree", "not compared"
RESOURCE_EXHAUSTED = 8
WIDER = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}


def verdict(status, reason="", detail=""):
    return {"status": status, "reason": reason, "detail": detail}


def with_arrays(answer):
    """The driver's tensors, with their elements as arrays."""
    if answer is None:
        return None
    if "list" in answer:
        return {"list": {**answer["list"], "items": [with_arrays(t) for t in answer["list"]["items"]]}}
    if "table" in answer:
        return {"table": [with_arrays(t) for t in answer["table"]]}
    if "handle" in answer:
        return answer
    return {"d": answer["d"], "s": answer["s"], "a": calls.array(answer)}


def no_kernel(error):
    text = str(error)
    return isinstance(error, (tf.errors.NotFoundError, tf.errors.InvalidArgumentError)) and (
        "Could not find device for node" in text or "No OpKernel was registered" in text)


def unlimited(error):
    return isinstance(error, (tf.errors.ResourceExhaustedError, MemoryError))


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def is_draw(case):
    """Numbers that TensorFlow draws with a seed it makes up."""
    attrs = case["attrs"]
    return "seed" in attrs and "seed2" in attrs and attrs["seed"] == 0 and attrs["seed2"] == 0


def narrowest(case):
    """The narrowest float among the inputs, or None."""
    found = [t["d"] for _, tensors in case["inputs"] for t in tensors if t.get("d") in TOLERANCES]
    return max(found, key=TOLERANCES.get, default=None)


def scattered(case, seed):
    """The case with every float input a few units of its last place away."""
    generator = np.random.default_rng(seed)

    def tensor(t):
        if t.get("d") not in TOLERANCES:
            return t
        a = calls.array(t)
        step = 4 * TOLERANCES[t["d"]][1]
        moved = (a.astype(np.complex128) * (1 + step * generator.uniform(-1, 1, a.shape)))
        moved = moved if np.iscomplexobj(a) else moved.real
        return {**t, "x": moved.astype(a.dtype).tobytes().hex()}

    return {**case, "inputs": [[name, [tensor(t) for t in tensors]] for name, tensors in case["inputs"]]}


def widened(case):
    """The case with floats of 64 bits; None where there are none to widen."""
    found = []

    def tensor(t):
        if "variable" in t:
            return {"variable": tensor(t["variable"])}
        if "d" in t and t["d"] in WIDER:
            found.append(t)
            to = WIDER[t["d"]]
            return {"d": to, "s": t["s"], "x": calls.array(t).astype(to).tobytes().hex()}
        return t

    inputs = [[name, [tensor(t) for t in tensors]] for name, tensors in case["inputs"]]
    attrs = dict(case["attrs"])
    for a in calls.op_def(case["op"]).attr:
        if a.type == "type" and attrs.get(a.name) in WIDER:
            attrs[a.name] = WIDER[attrs[a.name]]
    return {**case, "inputs": inputs, "attrs": attrs} if found else None


def as_wide(t):
    return {**t, "d": WIDER.get(t["d"], t["d"]), "x": calls.array(t).astype(WIDER.get(t["d"], t["d"])).tobytes().hex()}


def same_picture(case, ours, theirs):
    """Encoded images that are other bytes of the same pixels (of JPEG, nearly the same)."""
    if not case["op"].startswith("Encode"):
        return False
    try:
        for a, b in zip(ours["a"].ravel(), theirs["a"].ravel()):
            x, y = (tf.io.decode_image(t, dtype=tf.uint16 if t[1:4] == b"PNG" else tf.uint8).numpy().astype(int)
                    for t in (a, b))
            if x.shape != y.shape or np.abs(x - y).max(initial=0) > (0 if a[1:4] == b"PNG" else 4):
                return False
    except (tf.errors.OpError, ValueError):
        return False
    return True


class Judge:
    def __init__(self, case, answer):
        self.case = case
        self.answer = answer

    def judge(self):
        case, answer = self.case, self.answer
        if "crash" in answer:
            return verdict(DISAGREE, "crash", f"{answer['crash']} in {answer['stage']}")
        if "foreign" in answer:
            return verdict(DISAGREE, "foreign exception", answer["foreign"])
        error = None
        try:
            if is_draw(case) or "seed" in case["attrs"]:
                calls.forget_kernels()
            self.call = calls.Call(case)
            self.results = self.call.run()
            theirs = [calls.as_answer(t, self.call.list_dtype) for t in self.results]
        except calls.Unfit as e:
            return verdict(APART, f"no such call in TensorFlow: {e}")
        except (tf.errors.OpError, ValueError, TypeError, RuntimeError, OverflowError, AttributeError,
                MemoryError) as e:
            error = e
        mine = answer.get("error")
        if unlimited(error) or (mine and mine["code"] == RESOURCE_EXHAUSTED):
            return verdict(APART, "too large")
        if mine and error:
            code = getattr(error, "error_code", 3)
            found = verdict(AGREE)
            found["codes"] = [mine["code"], code]
            return found
        if mine:
            return verdict(DISAGREE, "we refuse", mine["text"][:300])
        if error:
            if no_kernel(error):
                return verdict(APART, "TensorFlow has no kernel for it")
            if "Attr value has unhandled type" in str(error):
                return verdict(APART, "no such call in TensorFlow: a tensor as attribute")
            return verdict(DISAGREE, "TensorFlow refuses", first_line(error))
        return self.compare(theirs)

    def compare(self, theirs):
        ours = [with_arrays(t) for t in self.answer["out"]]
        if len(ours) != len(theirs):
            return verdict(DISAGREE, "number of outputs", f"{len(ours)} here, {len(theirs)} in TensorFlow")
        wider = False
        for i, (a, b) in enumerate(zip(ours, theirs)):
            found = difference(a, b, numbers=not is_draw(self.case), narrowest=narrowest(self.case))
            if not found:
                continue
            reason, detail = found
            if reason in ("values", "NaN", "infinity"):
                if "d" in a and inexact(a["d"]) and self.as_near(i, a, b):
                    wider = True
                    continue
                if other_vectors(self.case["op"], ours, theirs):
                    return verdict(DISAGREE, "vectors not unique", detail)
                if same_picture(self.case, a, b):
                    return verdict(DISAGREE, "encoded bytes", "other bytes of the same pixels")
                if "seed" in self.case["attrs"]:
                    reason = "random numbers"
            return verdict(DISAGREE, reason, f"output {i}, {detail}")
        for i, (a, state) in enumerate(zip(self.answer.get("after", []), self.call.state)):
            a, b = with_arrays(a), state.state()
            found = difference(a, b)
            if found and not ("d" in a and inexact(a["d"]) and self.state_as_near(i, a, b)):
                return verdict(DISAGREE, f"state, {found[0]}", f"variable {i}, {found[1]}")
        found = self.compare_gradients()
        if not found:
            found = verdict(AGREE)
            found["wider"] = wider
        return found

    def wide_results(self):
        case = widened(self.case)
        if case is None:
            return None
        try:
            call = calls.Call(case)
            return [calls.as_answer(t, call.list_dtype) for t in call.run()]
        except (calls.Unfit, tf.errors.OpError, ValueError, TypeError):
            return None

    def state_as_near(self, i, ours, theirs):
        case = widened(self.case)
        try:
            call = calls.Call(case)
            call.run()
            exact = call.state[i].state()
        except (calls.Unfit, tf.errors.OpError, ValueError, TypeError):
            return False
        return nearer(ours["d"], ours["a"], theirs["a"], exact["a"])

    def as_near(self, i, ours, theirs):
        exact = self.wide_results()
        if exact:
            return "a" in exact[i] and nearer(ours["d"], ours["a"], theirs["a"], exact[i]["a"])
        return within_scatter(ours["a"], theirs["a"], self.scatter(lambda call: call.run()[i]))

    def scatter(self, run):
        """What TensorFlow gives for inputs that rounding cannot tell from these."""
        found = []
        try:
            for seed in range(4):
                t = run(calls.Call(scattered(self.case, seed)))
                found.append(calls.as_answer(t)["a"])
        except (calls.Unfit, tf.errors.OpError, ValueError, TypeError, LookupError, AttributeError):
            return []
        return found

    def compare_gradients(self):
        """None when they agree."""
        answer = self.answer
        if "grads" not in answer:
            return None
        error = None
        try:
            theirs = self.call.gradients(answer["sources"], answer["dy"])
        except LookupError as e:
            if "registry has no entry" in str(e) or "No gradient defined" in str(e):
                return None  # TensorFlow has none
            error = e
        except (tf.errors.OpError, ValueError, TypeError, AttributeError, RuntimeError, NotImplementedError,
                AssertionError, IndexError) as e:
            error = e
        ours = answer["grads"]
        if isinstance(ours, dict):
            if error or all(t is None for t in theirs):
                return None
            return verdict(DISAGREE, "gradient: we refuse", ours["error"]["text"][:300])
        if error:
            if no_kernel(error) or unlimited(error):
                return None
            return verdict(DISAGREE, "gradient: TensorFlow refuses", first_line(error))
        exact = None
        scale = max((largest(np.abs(calls.array(t).astype(np.complex128))) for t in answer["dy"]), default=0.0)
        for number, a, b in zip(answer["sources"], ours, theirs):
            name = f"by input {number}"
            if a is None and b is None:
                continue
            if a is None or b is None:
                there = with_arrays(a)["a"] if b is None else calls.as_answer(b)["a"]
                zeros = ", of zeros" if not np.any(np.asarray(there, dtype=np.complex128)) else ""
                return verdict(DISAGREE, ("gradient here only" if b is None else "gradient in TensorFlow only") + zeros,
                               name)
            a, b = with_arrays(a), calls.as_answer(b)
            found = difference(a, b, narrowest=narrowest(self.case), scale=scale)
            if not found:
                continue
            if found[0] in ("values", "NaN", "infinity"):
                exact = exact or self.wide_gradients()
                place = answer["sources"].index(number)
                if exact and exact[place] is not None and nearer(a["d"], a["a"], b["a"], exact[place]):
                    continue
                if not exact and within_scatter(a["a"], b["a"], self.scatter(
                        lambda call: call.gradients(answer["sources"], answer["dy"])[place])):
                    continue
            return verdict(DISAGREE, f"gradient, {found[0]}", f"{name}, {found[1]}")
        return None

    def wide_gradients(self):
        case = widened(self.case)
        if case is None:
            return None
        try:
            grads = calls.Call(case).gradients(self.answer["sources"], [as_wide(t) for t in self.answer["dy"]])
            return [None if g is None else calls.as_answer(g)["a"] for g in grads]
        except (calls.Unfit, tf.errors.OpError, ValueError, TypeError, LookupError, AttributeError):
            return None


def judge(case, answer):
    return Judge(case, answer).judge()
