"""The tables of a run, and its calls as Python."""
import collections
import inspect
import json
import re

import tensorflow as tf

from tensorflow_calls import array, op_def


def literal(t):
    if "variable" in t:
        return f"tf.Variable({literal(t['variable'])}).handle"
    if "d" not in t:
        return json.dumps(t)
    a = array(t)
    if a.size > 64:
        return f"<{t['d']} of shape {t['s']}>"
    values = re.sub(r"\s+", " ", repr(a.tolist()))
    values = re.sub(r"\bnan\b", "np.nan", re.sub(r"\binf\b", "np.inf", values))
    shape = f", shape={t['s']}" if a.size == 0 else ""
    return f"tf.constant({values}, tf.{t['d']}{shape})"


def attr_literal(kind, value):
    if kind == "string":
        return repr(bytes.fromhex(value).decode("utf-8", "replace"))
    if kind == "list(string)":
        return repr([bytes.fromhex(v).decode("utf-8", "replace") for v in value])
    if kind == "type":
        return f"tf.{value}"
    if kind == "list(type)":
        return "[" + ", ".join(f"tf.{v}" for v in value) + "]"
    return literal(value) if kind == "tensor" else repr(value)


def python(case):
    """The call by tf.raw_ops, whose names for inputs are not always those of the definition."""
    definition = op_def(case["op"])
    if definition is None or not hasattr(tf.raw_ops, case["op"]):
        return case["op"]
    names = [a.name for a in definition.input_arg] + [a.name for a in definition.attr]
    parameters = [p for p in inspect.signature(getattr(tf.raw_ops, case["op"])).parameters if p != "name"]
    renamed = dict(zip([n for n in names if n not in parameters and n not in inferred(definition)],
                       [p for p in parameters if p not in names]))
    kinds = {a.name: a.type for a in definition.attr}
    texts = []
    for arg, (_, tensors) in zip(definition.input_arg, case["inputs"]):
        values = [literal(t) for t in tensors]
        is_list = arg.number_attr or arg.type_list_attr
        texts.append(f"{renamed.get(arg.name, arg.name)}=" + (f"[{', '.join(values)}]" if is_list else values[0]))
    for name, value in case["attrs"].items():
        name = renamed.get(name, name)
        if name in parameters and name in kinds:
            texts.append(f"{name}={attr_literal(kinds[name], value)}")
    return f"tf.raw_ops.{case['op']}({', '.join(texts)})" + (f"  # {case['how']}" if "how" in case else "")


def inferred(definition):
    args = list(definition.input_arg)
    return {a.type_attr for a in args} | {a.number_attr for a in args} | {a.type_list_attr for a in args}


def size(case):
    elements = sum(len(t["x"]) for _, tensors in case["inputs"] for t in tensors if "x" in t)
    return len(json.dumps(case["inputs"])) + elements + (1000 if "how" in case else 0)


def kind_of(detail):
    """Details that differ in numbers and shapes alone are one kind."""
    text = re.sub(r"\{\{.*?\}\}|\[Op:.*|\(at [^)]*\)|inputs .*", "", detail)
    text = re.sub(r"\[[^\]]*\]|[-+]?[0-9][0-9.e+-]*|\bnan\b|\binf\b|'[^']*'|\"[^\"]*\"", "#", text)
    return text[:60].strip()


class Tally:
    """Counts of verdicts."""

    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)  # "samples" or "random": verdicts
        self.apart = collections.Counter()
        self.groups = {}  # (op, reason, kind of detail, how it is known): [count, shortest case, its detail]
        self.ops = collections.defaultdict(collections.Counter)
        self.codes = collections.Counter()
        self.wider = 0

    def add(self, case, found, known):
        part = "samples" if case["id"].startswith("s") else "random"
        status = found["status"]
        if status == "disagree":
            status = known
            key = (case["op"], found["reason"], kind_of(found["detail"]), known)
            group = self.groups.setdefault(key, [0, case, found["detail"]])
            group[0] += 1
            if size(case) < size(group[1]):
                group[1], group[2] = case, found["detail"]
        elif status == "not compared":
            self.apart[found["reason"]] += 1
        elif "codes" in found and found["codes"][0] != found["codes"][1]:
            self.codes[tuple(found["codes"])] += 1
        self.wider += bool(found.get("wider"))
        self.counts[part][status] += 1
        self.ops[case["op"]][status] += 1

    def rows(self):
        order = sorted(self.groups.items(), key=lambda item: -item[1][0])
        for (op, reason, _, known), (count, case, detail) in order:
            yield {"op": op, "reason": reason, "count": count, "known": known, "detail": detail, "id": case["id"],
                   "how": case.get("how", ""), "python": python(case), "case": case}

    def summary(self):
        lines = [f"{'':10} {'calls':>7} {'compared':>9} {'agree':>7} {'':>7} {'decided':>8} {'open':>6} {'new':>5}"]
        for part, c in sorted(self.counts.items(), reverse=True):
            compared = sum(c.values()) - c["not compared"]
            share = f"{100 * c['agree'] / compared:.2f}%" if compared else ""
            lines.append(f"{part:10} {sum(c.values()):7} {compared:9} {c['agree']:7} {share:>7} {c['decided']:8} "
                         f"{c['open']:6} {c['new']:5}")
        return "\n".join(lines)
