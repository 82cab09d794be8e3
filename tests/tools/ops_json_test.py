#!/usr/bin/env python3
"""usage: ops_json_test.py RUNNEL    what `runnel ops --json` promises to programs that read it"""
import json
import subprocess
import sys

RUNNEL = sys.argv[1]
TYPES = {"int", "float", "bool", "string", "type", "shape", "tensor",
         "list(int)", "list(float)", "list(string)", "list(type)", "list(shape)", "func", "list(func)"}
DTYPES = {"float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
          "uint64", "bool", "string", "complex64", "complex128", "resource", "variant"}
failures = []


def expect(truth, *what):
    if not truth:
        failures.append(" ".join(str(w) for w in what))


def ops(*arguments):
    done = subprocess.run([RUNNEL, "ops", "--json", *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def check(op):
    name = op.get("name")
    expect(list(op) == ["name", "inputs", "outputs", "attributes", "dtypes", "gradient", "stateful", "doc", "aliases"],
           name, "has the keys", list(op))
    attributes = {a["name"]: a for a in op["attributes"]}
    expect(len(attributes) == len(op["attributes"]), name, "names an attribute twice")
    for attribute in op["attributes"]:
        expect(attribute["type"] in TYPES, name, attribute)
        expect(set(attribute) <= {"name", "type", "default", "allowed", "minimum"}, name, attribute)
        default = attribute.get("default")
        if "allowed" in attribute:
            kind = attribute["type"].removeprefix("list(").removesuffix(")")
            expect(kind in ("type", "string") and attribute["allowed"], name, attribute)
            expect(kind == "string" or set(attribute["allowed"]) <= DTYPES, name, attribute)
            chosen = default if isinstance(default, list) else [] if default is None else [default]
            expect(set(chosen) <= set(attribute["allowed"]), name, attribute)
        if "minimum" in attribute:
            expect(attribute["type"] == "int" or attribute["type"].startswith("list("), name, attribute)
            size = len(default) if isinstance(default, list) else default
            expect(size is None or size >= attribute["minimum"], name, attribute)
    for arg in op["inputs"] + op["outputs"]:
        expect(arg["name"] and isinstance(arg["list"], bool), name, arg)
        expect(("type" in arg) != ("type_attr" in arg), name, arg)
        expect("type" not in arg or arg["type"] in DTYPES, name, arg)
        expect("type_attr" not in arg or arg["type_attr"] in attributes, name, arg)
        expect("number_attr" not in arg or arg["number_attr"] in attributes, name, arg)
    typed = [a["allowed"] for a in op["attributes"] if a["type"] == "type" and "allowed" in a]
    expect(not op["dtypes"] or op["dtypes"] == typed[0], name, "has the dtypes", op["dtypes"])
    expect(isinstance(op["gradient"], bool), name)
    expect(op["doc"], name, "has no doc")


listed = ops()
names = [op["name"] for op in listed]
expect(names == sorted(set(names)), "the list is not sorted")
for each in listed:
    check(each)

add = next(op for op in listed if op["name"] == "AddV2")
expect([i["name"] for i in add["inputs"]] == ["x", "y"] and add["inputs"][0]["type_attr"] == "T", add)
expect(add["gradient"] and "Add" in add["aliases"] and "float32" in add["dtypes"], add)
expect(ops("Add") == [add], "an alias leads to another op")
total = next(op for op in listed if op["name"] == "Sum")
keep = [a for a in total["attributes"] if a["name"] == "keep_dims"]
expect(keep == [{"name": "keep_dims", "type": "bool", "default": False}], total)
pack = next(op for op in listed if op["name"] == "Pack")
expect(pack["inputs"][0]["list"] and pack["inputs"][0]["number_attr"] == "N", pack)
expect({"name": "N", "type": "int", "minimum": 1} in pack["attributes"], pack)
conv = {a["name"]: a for a in next(op for op in listed if op["name"] == "Conv3D")["attributes"]}
expect(conv["padding"] == {"name": "padding", "type": "string", "allowed": ["SAME", "VALID"]}, conv)
expect(conv["strides"] == {"name": "strides", "type": "list(int)", "minimum": 5}, conv)

for failure in failures:
    print("FAILED:", failure)
sys.exit(bool(failures))
