"""scripts/unique_names finds what two files define alike, and lets pass what may stand in both."""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scripts", "unique_names")
loader = importlib.machinery.SourceFileLoader("unique_names", SCRIPT)
unique_names = importlib.util.module_from_spec(importlib.util.spec_from_loader("unique_names", loader))
loader.exec_module(unique_names)


def names(text):
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write("namespace runnel {\nnamespace {\n\n" + text + "\n}  // namespace\nint outside() { return 1; }\n}\n")
        file.flush()
        return {name for name, _ in unique_names.names(file.name)}


class UniqueNames(unittest.TestCase):
    def test_what_is_found(self):
        self.assertEqual(names("struct Case {\n  int size;\n};\nclass Trap : public Base {\n};\n"), {"Case", "Trap"})
        self.assertEqual(names("constexpr int64_t kMost = 4;\nconst double kValues[] = {1};\n"), {"kMost", "kValues"})
        self.assertEqual(names("constexpr int kHead = 4, kTail = 2;\n"), {"kHead", "kTail"})
        self.assertEqual(names("using Types = A;\n"), {"Types"})

    def test_functions_differ_by_their_parameters(self):
        self.assertEqual(names("Tensor ramp(const Shape& shape) {\n  return f(shape);\n}\n"), {"ramp(const Shape&)"})
        self.assertEqual(names("Tensor ramp(const Shape& other) {\n}\n"), {"ramp(const Shape&)"})
        self.assertEqual(names("template <class T>\nstd::vector<T> ramp(int64_t n) {\n}\n"), {"ramp(int64_t)"})

    def test_what_is_no_definition(self):
        self.assertEqual(names("// struct Case {\nvoid f() {\n  int inside = 1;\n  call(inside);\n}\n"), {"f()"})
        self.assertEqual(names("using namespace test;\n"), set())


if __name__ == "__main__":
    unittest.main()
