#!/usr/bin/env python3
"""Proves that scripts/layering finds each kind of fault, and accepts a tree without one."""
import pathlib
import subprocess
import sys
import tempfile

LIST = 'cmake/public_headers.cmake'
GOOD = {
    LIST: 'set(RUNNEL_PUBLIC_HEADERS\n  # one (comment)\n  runnel/runnel.h\n  runnel/base/a.h runnel/io/b.h\n  runnel/tensor/tensor.h)\n',
    'runnel/CMakeLists.txt': 'set(RUNNEL_FOLDERS base io tensor)\n',
    'runnel/runnel.h': '#include "runnel/tensor/tensor.h"\n',
    'runnel/runnel.cpp': '#include "runnel/runnel.h"\n',
    'runnel/base/a.h': '#include <vector>\n#include <sys/types.h>\n',
    'runnel/base/format.h': '#include <fmt/format.h>\n',
    'runnel/io/b.cpp': '#include "runnel/base/format.h"\n#include "runnel/io/b.h"\n#include <zlib.h>\n',
    'runnel/io/b.h': '#include "runnel/base/a.h"\n',
    'runnel/tensor/tensor.h': '#include "runnel/base/a.h"\n#include "runnel/io/b.h"\n',
}
BAD_SOURCES = [
    ('runnel/base/a.h', '#include "runnel/io/b.h"', 'base stands before io'),
    ('runnel/io/b.cpp', '  #  include "runnel/tensor/tensor.h"', 'io stands before tensor'),
    ('runnel/io/sub/c.cpp', '#include "runnel/tensor/tensor.h"', 'io stands before tensor'),
    ('runnel/tensor/t.cpp', '#include "runnel/runnel.h"', 'above all folders'),
    ('runnel/io/b.cpp', '#include "b.h"', 'not of the form'),
    ('runnel/io/b.cpp', '#include "tests/x.h"', 'not of the form'),
    ('runnel/io/b.cpp', '#include "runnel/base/none.h"', 'no such file'),
    ('runnel/extra/e.h', '#include <vector>', 'not in RUNNEL_FOLDERS'),
    ('runnel/tensor/tensor.h', '#include <dnnl.hpp>', 'third-party'),
    ('runnel/tensor/tensor.h', '#include <Eigen/Dense>', 'third-party'),
    ('runnel/io/b.h', '#include <fmt/core.h>', 'third-party'),
    ('runnel/io/b.h', '#include "runnel/base/format.h"', 'not in cmake/public_headers.cmake'),
]
BAD_LISTS = [
    ('', 'no RUNNEL_PUBLIC_HEADERS'),
    ('runnel/base/a.h', 'runnel/runnel.h is not on the list'),
    ('runnel/runnel.h runnel/tensor/tensor.h runnel/base/a.h', '"runnel/io/b.h": a public header includes'),
    ('runnel/runnel.h runnel/tensor/tensor.h runnel/base/a.h runnel/io/b.h runnel/base/a.h', 'twice'),
    ('runnel/runnel.h runnel/tensor/tensor.h runnel/base/a.h runnel/io/b.h runnel/io/gone.h', 'no such file'),
    ('runnel/runnel.h runnel/tensor/tensor.h runnel/base/a.h runnel/io/b.h runnel/kernels/k.h', 'is internal'),
]
BAD_INSTALLED = [
    ('runnel/base/a.h', '#include <fmt/core.h>', 'third-party'),
    ('runnel/base/a.h', '#include "runnel/base/gone.h"', 'not installed'),
    ('runnel/graph/executor/plan.h', '#include <vector>', 'internal, but installed'),
]


def run(arguments):
    script = pathlib.Path(__file__).resolve().parent.parent / 'scripts/layering'
    done = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True)
    return done.returncode, done.stderr


def with_tree(files, arguments):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return run([*arguments, root])


def main():
    faults = []

    def expect(files, arguments, text):
        status, output = with_tree(files, arguments)
        if text is None and status != 0:
            faults.append(f'a good tree was refused: {output}')
        if text is not None and (status != 1 or text not in output):
            faults.append(f'expected "{text}", got status {status}: {output}')

    installed = {name: text for name, text in GOOD.items() if name.endswith('.h') and 'format' not in name}
    expect(GOOD, [], None)
    expect(installed, ['--installed'], None)
    expect({}, ['--installed'], 'no headers')
    for tree, arguments, cases in ((GOOD, [], BAD_SOURCES), (installed, ['--installed'], BAD_INSTALLED)):
        for name, line, text in cases:
            expect({**tree, name: tree.get(name, '') + line + '\n'}, arguments, text)
    for headers, text in BAD_LISTS:
        expect({**GOOD, LIST: f'set(RUNNEL_PUBLIC_HEADERS {headers})\n' if headers else ''}, [], text)
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == '__main__':
    main()
