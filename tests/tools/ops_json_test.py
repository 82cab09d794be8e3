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
        expect(set(attribute) <= {"name", "type", "default", "allowed"}, name, attribute)
        if "allowed" in attribute:
            expect(attribute["allowed"] and set(attribute["allowed"]) <= DTYPES, name, attribute)
            expect("default" not in attribute or attribute["default"] in attribute["allowed"], name, attribute)
    for arg in op["inputs"] + op["outputs"]:
        expect(arg["name"] and isinstance(arg["list"], bool), name, arg)
        expect(("type" in arg) != ("type_attr" in arg), name, arg)
        expect("type" not in arg or arg["type"] in DTYPES, name, arg)
        expect("type_attr" not in arg or arg["type_attr"] in attributes, name, arg)
        expect("number_attr" not in arg or arg["number_attr"] in attributes, name, arg)
    typed = [a for a in op["attributes"] if "allowed" in a]
    expect(op["dtypes"] == (typed[0]["allowed"] if typed else []), name, "has the dtypes", op["dtypes"])
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

for failure in failures:
    print("FAILED:", failure)
sys.exit(bool(failures))
