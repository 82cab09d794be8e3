#!/usr/bin/env python3
"""usage: ckpt_test.py RUNNEL ROOT    `runnel ckpt` on checkpoints that TensorFlow wrote, whole and damaged ones.

Everything expected is worked out without Runnel: it stands in the tables beside the checkpoints.
"""
import ast
import collections
import csv
import hashlib
import json
import pathlib
import re
import shutil
import struct
import sys
import tempfile

from runnel_program import expect, faults, fixtures, run_program

GRAPH = '_CHECKPOINTABLE_OBJECT_GRAPH'
VALUE = '/.ATTRIBUTES/VARIABLE_VALUE'


def run(*arguments):
    return run_program('ckpt', *arguments)


def expect_error(what, message, *arguments):
    status, _, err = run(*arguments)
    expect(f'{what}: status', status, 1)
    if not re.search(message, err) or not err.startswith('runnel: ') or err.count('\n') != 1:
        faults.append(f'{what}: the error is {err!r}')


def one(*arguments):
    """The one JSON object that a command prints."""
    _, out, err = run(*arguments, '--json')
    try:
        return json.loads(out)
    except ValueError:
        faults.append(f'{arguments}: printed {out[:200]!r} {err!r}')
        return collections.defaultdict(list)


def listed(path):
    status, out, err = run('ls', path, '--json')
    expect(f'ls {path}', (status, err), (0, ''))
    return {entry['key']: entry for entry in map(json.loads, out.splitlines())}


def array(path, key):
    """(dtype as NumPy writes it, shape, bytes)"""
    status, out, err = run('cat', path, key, '--npy', '-')
    if status or not out.startswith(b'\x93NUMPY\x01\x00'):
        faults.append(f'cat {path} {key}: {err}')
        return '', (), b''
    size = struct.unpack_from('<H', out, 8)[0]
    header = ast.literal_eval(out[10:10 + size].decode())
    return header['descr'], header['shape'], out[10 + size:]


def rows(table):
    return csv.DictReader(open(table), delimiter='\t', quoting=csv.QUOTE_NONE)


def check_table(folder):
    by_prefix = collections.defaultdict(list)
    with open(folder / 'EXPECTED_ckpt.tsv') as table:
        for line in list(table)[1:]:
            cells = line.rstrip('\n').split('\t')
            by_prefix[cells[0]].append(cells)
    for prefix, lines in by_prefix.items():
        entries = listed(folder / prefix)
        expect(f'{prefix}: keys', sorted(entries), sorted(cells[1] for cells in lines))
        for _, key, dtype, shape, shard, offset, size, *_ in lines:
            wanted = {'key': key, 'dtype': dtype, 'shape': json.loads(shape), 'shard': int(shard), 'offset': int(offset),
                      'size': int(size)}
            expect(f'{prefix} {key}', entries.get(key), wanted)
    return len(by_prefix)


def graph_of(tree):
    """As expected.json has it."""
    nodes = []
    for node in tree['nodes']:
        made = {'id': node['id'], 'children': [[c['name'], c['node']] for c in node['children']]}
        if node['attributes']:
            made['attributes'] = node['attributes']
        if node['slot_variables']:
            made['slot_variables'] = [[s['variable'], s['name'], s['slot']] for s in node['slot_variables']]
        made['has_checkpoint_values'] = node['has_checkpoint_values']
        nodes.append(made)
    return nodes


def plain_slots(nodes):
    for node in nodes:
        node.setdefault('has_checkpoint_values', False)
        if 'slot_variables' in node:
            node['slot_variables'] = [list(s.values()) if isinstance(s, dict) else s for s in node['slot_variables']]
    return nodes


# Their values are looked at one by one; the checksums of all are.
BY_VALUE = {'containers', 'dtypes', 'lookup_tables', 'model_conv_bn', 'random_generator', 'two_devices', 'v1_saver'}


def check_values(folder, name):
    """Values and object graphs of what TensorFlow 2.15 wrote, by cat and tree."""
    about = json.load(open(folder / name / 'expected.json'))
    for checkpoint in about['checkpoints']:
        prefix = folder / name / checkpoint['prefix']
        entries = listed(prefix)
        for key, wanted in checkpoint['entries'].items():
            got = entries.get(key, {})
            expect(f'{prefix} {key}', (got.get('dtype'), got.get('shape')), (wanted['dtype'], wanted['shape']))
            if wanted['dtype'] in ('string', 'variant') or name not in BY_VALUE:
                continue
            descr, shape, data = array(prefix, key)
            expect(f'{prefix} {key}: shape', list(shape), wanted['shape'])
            if wanted['dtype'] == 'bfloat16':  # written as float32
                data = b''.join(data[i + 2:i + 4] for i in range(0, len(data), 4))
            expect(f'{prefix} {key}: {descr}', hashlib.sha256(data).hexdigest(), wanted['sha256'])
        if checkpoint.get('object_graph'):
            expect(f'{prefix}: graph', graph_of(one('tree', prefix)), plain_slots(checkpoint['object_graph']))
        verified = one('verify', prefix)
        expect(f'{prefix}: verify', (verified['ok'], verified['damaged'], verified['missing']), (True, [], []))
        compared = one('diff', prefix, prefix)
        expect(f'{prefix}: diff', (compared['equal'], compared['same']), (True, len(entries)))


def check_damaged(folder):
    count = 0
    for row in rows(folder / 'DERIVED_EXPECT.tsv'):
        name, wanted = row['file'], row['expected']
        if not name.startswith('derived/ckpt/') or not row['source'].startswith('(as an independent'):
            continue
        prefix = folder / name / 'ckpt'
        status, out, err = run('verify', prefix, '--json')
        found = json.loads(out)
        expect(f'{name}: status', (status, found['ok']), (1, False))
        expect(f'{name}: one line', err.count('\n'), 1)
        count += 1
        if wanted.startswith('open fails'):
            expect(f'{name}: code', found['error']['code'], 'DATA_LOSS')
            expect(f'{name}: ls', run('ls', prefix)[0], 1)
            continue
        bad = ast.literal_eval(wanted[wanted.index('{'):])
        expect(f'{name}: damaged', [each['key'] for each in found['damaged']], sorted(bad))
        for each in found['damaged']:
            code = 'NOT_FOUND' if bad[each['key']] == 'NOSHARD' else 'DATA_LOSS'
            expect(f"{name}: {each['key']}", each['code'], code)
        expect(f'{name}: no shard', 'because their file is not there' in err, 'NOSHARD' in bad.values())
        # What is not damaged is printed all the same.
        for key, entry in listed(prefix).items():
            expect(f'{name}: cat {key}', run('cat', prefix, key)[0], 1 if key in bad else 0)
    return count


def check_paths(folder, work):
    keep3 = folder / 'tf215/checkpoints/manager_keep3'
    for path in keep3, keep3 / 'ckpt-5', keep3 / 'ckpt-5.index', keep3 / 'ckpt-5.data-00000-of-00001':
        tree = one('tree', path)
        expect(f'{path}: prefix', tree['checkpoint'], str(keep3 / 'ckpt-5'))
    saved = folder / 'handbook/docs/_static/code/zh/savedmodel/custom/saved'
    expect('SavedModel', listed(saved), listed(saved / 'variables/variables'))
    for file in keep3.glob('ckpt-*'):
        shutil.copy(file, work / file.name)
    expect_error('no state file', r'no state file.*ckpt-3, ckpt-4, ckpt-5', 'ls', work)
    expect_error('nothing there', r'no such checkpoint', 'ls', work / 'none')
    expect_error('no key', r"no key 'none'.*runnel ckpt ls", 'cat', keep3, 'none')
    expect_error('strings are no array', r'leave out --npy', 'cat', keep3, GRAPH, '--npy', work / 'a.npy')
    expect('usage', run('ls')[0], 2)
    (work / 'ckpt-3.data-00001-of-00002').write_bytes(b'')
    expect('unused', one('verify', work / 'ckpt-3')['unused_files'], [str(work / 'ckpt-3.data-00001-of-00002')])


def check_diff(folder, work):
    keep3 = folder / 'tf215/checkpoints/manager_keep3'
    found = one('diff', keep3 / 'ckpt-3', keep3 / 'ckpt-5')
    different = {each['key']: each for each in found['different']}
    counter = 'save_counter' + VALUE
    expect('diff: status', run('diff', keep3 / 'ckpt-3', keep3 / 'ckpt-5')[0], 1)
    expect('diff: counter', different[counter],
           {'key': counter, 'elements': 1, 'max_abs_difference': 2.0, 'of': 1})
    adam = folder / 'tf215/checkpoints/optimizer_adam/ckpt-1'
    legacy = folder / 'tf215/checkpoints/optimizer_legacy_adam/ckpt-1'
    found = one('diff', adam, legacy)
    a, b = listed(adam), listed(legacy)
    expect('diff: only in first', found['only_in_first'], sorted(set(a) - set(b)))
    expect('diff: only in second', found['only_in_second'], sorted(set(b) - set(a)))
    kernel = 'model/layer_with_weights-0/kernel' + VALUE
    x, y = (struct.unpack('<16f', array(p, kernel)[2]) for p in (adam, legacy))
    largest = max(abs(p - q) for p, q in zip(x, y))
    got = {each['key']: each for each in found['different']}.get(kernel, {})
    expect('diff: largest', got.get('max_abs_difference', 0.0), largest)
    first, second = 'model/layer_with_weights-0', 'model/layer_with_weights-1'
    run('rename', adam, f'{first}={second}', f'{second}={first}', '--to', work / 'swapped')
    found = one('diff', adam, work / 'swapped')
    expect('diff: shapes', {each['key']: each.get('dtypes_and_shapes') for each in found['different']},
           {GRAPH: None, first + '/kernel' + VALUE: ['float32 [4,4]', 'float32 [4,2]'],
            first + '/bias' + VALUE: ['float32 [4]', 'float32 [2]'],
            second + '/kernel' + VALUE: ['float32 [4,2]', 'float32 [4,4]'],
            second + '/bias' + VALUE: ['float32 [2]', 'float32 [4]']})


def same_values(what, a, b, mapping=lambda key: key):
    in_a, in_b = listed(a), listed(b)
    expect(f'{what}: keys', sorted(map(mapping, in_a)), sorted(in_b))
    for key, entry in in_a.items():
        if key == GRAPH or mapping(key) not in in_b:
            continue
        same = in_b[mapping(key)]
        expect(f'{what}: {key}', (same['dtype'], same['shape']), (entry['dtype'], entry['shape']))
        if entry['dtype'] in ('string', 'variant'):
            x, y = (one('cat', p, k)['values'] for p, k in ((a, key), (b, mapping(key))))
        else:
            x, y = array(a, key), array(b, mapping(key))
        expect(f'{what}: {key}: values', y, x)


def leads_to(tree, *names):
    node = tree['nodes'][0]
    for name in names:
        found = [c['node'] for c in node['children'] if c['name'] == name]
        if not found:
            return None
        node = tree['nodes'][found[0]]
    return node['attributes'][0]['checkpoint_key'] if node['attributes'] else ''


def check_rename(folder, work):
    adam = folder / 'tf215/checkpoints/optimizer_legacy_adam/ckpt-1'
    to = work / 'renamed'
    rules = ['model/layer_with_weights-0=model/first', 'optimizer=my.adam'.replace('.', '..')]

    def mapping(key):
        key = key.replace('model/layer_with_weights-0/', 'model/first/')
        return re.sub(r'(^|OPTIMIZER_SLOT/)optimizer/', r'\1my..adam/', key)

    done = one('rename', adam, *rules, '--to', to)
    same_values('rename', adam, to, mapping)
    # 'optimizer' leads to four variables, the first layer to two; slots have no edges.
    expect('rename: edges', (done['object_graph'], done['renamed_edges'], done['not_in_graph']), (True, 2, []))
    tree = one('tree', to)
    expect('rename: edge', leads_to(tree, 'model', 'first', 'kernel'), 'model/first/kernel' + VALUE)
    expect('rename: other name', leads_to(tree, 'model', 'layer-0', 'kernel'), 'model/first/kernel' + VALUE)
    expect('rename: escaped', leads_to(tree, 'my.adam', 'iter'), 'my..adam/iter' + VALUE)
    slots = {tree['nodes'][s['slot']]['attributes'][0]['checkpoint_key']
             for node in tree['nodes'] for s in node['slot_variables']}
    expect('rename: slots', 'model/first/kernel/.OPTIMIZER_SLOT/my..adam/m' + VALUE in slots, True)
    expect('rename: verify', one('verify', to)['ok'], True)
    expect_error('rename: again', 'is there already', 'rename', adam, *rules, '--to', to)
    # Another depth: the keys change, the graph leads to them as before, and it is said so.
    done = one('rename', adam, 'model=', '--to', work / 'short')
    tree = one('tree', work / 'short')
    expect('rename: short', leads_to(tree, 'model', 'layer-0', 'kernel'), 'layer_with_weights-0/kernel' + VALUE)
    expect('rename: said', 'model/layer_with_weights-0/kernel' + VALUE in done['not_in_graph'], True)
    # Two halves of one edge's keys with two names: the edge stays.
    done = one('rename', adam, '--regex', r'model/(layer)_with_weights-0/kernel=net/\1-0/kernel', '--to', work / 'part')
    expect('rename: regex', 'net/layer-0/kernel' + VALUE in listed(work / 'part'), True)
    expect('rename: split', leads_to(one('tree', work / 'part'), 'model', 'layer-0', 'kernel'),
           'net/layer-0/kernel' + VALUE)
    expect('rename: split said', any('model' in each for each in done['not_in_graph']), True)
    expect_error('rename: nothing', 'no key of .* is or begins with nothing=x', 'rename', adam, 'nothing=x', '--to', work / 'n')
    expect_error('rename: twice', 'would both be', 'rename', adam, '--regex', 'kernel|bias=x', '--to', work / 'n')
    expect_error('rename: the end', 'before /.ATTRIBUTES/', 'rename', folder / 'tf215/checkpoints/lookup_tables',
                 '--regex', 'keys=names', '--to', work / 'n')
    expect_error('rename: no expression', r"'\(=x' is no rule of --regex: '\('", 'rename', adam, '--regex', '(=x', '--to', work / 'n')
    expect_error('rename: no rule', "'nothing' is no rule", 'rename', adam, 'nothing', '--to', work / 'n')
    expect('rename: nothing is left behind', list(work.glob('n.*')), [])
    # Of TensorFlow 1, with partitioned variables and without a graph.
    for index in sorted((folder / 'tf215/checkpoints/v1_saver').glob('*.index')):
        done = one('rename', index, '=old', '--to', work / f'v1_{index.stem}')
        same_values(f'rename {index}', index, work / f'v1_{index.stem}',
                    lambda key: key if key == GRAPH else 'old/' + key)
        expect('rename: no graph', done['object_graph'], GRAPH in listed(index))


def check_merge(folder, work):
    two = folder / 'tf215/checkpoints/two_devices'
    for index in sorted(two.glob('*.index')):
        to = work / f'one_{index.stem}'
        run('merge', index, '--to', to)
        same_values('merge', index, to)
        expect('merge: shards', {entry['shard'] for entry in listed(to).values()}, {0})
        expect('merge: files', (work / f'one_{index.stem}.data-00000-of-00001').exists(), True)
        expect('merge: graph', one('tree', to)['nodes'], one('tree', index)['nodes'])
    # Two with nothing in common but the counter.
    adam = folder / 'tf215/checkpoints/optimizer_legacy_adam/ckpt-1'
    for part, rules in ('a', 'model=one'), ('b', 'model=two'):
        run('rename', adam, rules, '--to', work / part)
    done = one('merge', work / 'a', work / 'b', '--to', work / 'both')
    a, b, both = (listed(work / name) for name in ('a', 'b', 'both'))
    expect('merge: keys', sorted(both), sorted(set(a) | set(b)))
    expect('merge: count', done['keys'], len(both))
    tree = one('tree', work / 'both')
    for part in 'one', 'two':
        expect(f'merge: {part}', leads_to(tree, part, 'layer-0', 'kernel'),
               f'{part}/layer_with_weights-0/kernel' + VALUE)
    slots = [s for node in tree['nodes'] for s in node['slot_variables']]
    expect('merge: slots', len(slots), 16)
    expect('merge: verify', one('verify', work / 'both')['ok'], True)
    keep3 = folder / 'tf215/checkpoints/manager_keep3'
    pair = keep3 / 'ckpt-3', keep3 / 'ckpt-5'
    expect_error('merge: different', "different values of 'save_counter/.*--keep", 'merge', *pair, '--to', work / 'm')
    for keep, kept in ('first', 3), ('last', 5):
        run('merge', *pair, '--keep', keep, '--to', work / keep)
        expect(f'merge: {keep}', one('cat', work / keep, 'save_counter')['values'], [kept])


shared = fixtures()
if shared is None:
    print("skipped: the folder with TensorFlow's files is missing (RUNNEL_FIXTURES names it)")
    sys.exit(77)
names = sorted(path.parent.name for path in (shared / 'tf215/checkpoints').glob('*/expected.json')
               if path.parent.name != 'partial')
print(f'{check_table(shared)} checkpoints of the table, {check_damaged(shared)} damaged ones')
for name in names:
    check_values(shared / 'tf215/checkpoints', name)
with tempfile.TemporaryDirectory() as temporary:
    for number, check in enumerate((check_paths, check_diff, check_rename, check_merge)):
        folder = pathlib.Path(temporary) / str(number)
        folder.mkdir()
        check(shared, folder)
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
