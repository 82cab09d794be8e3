"""usage: read.py FOLDER REPORTS    TensorBoard's profile plugin against what `runnel profile --json` says

FOLDER has the profiles `made` and `recorded`; REPORTS has made.json and recorded.json.
"""
import collections
import json
import math
import pathlib
import sys
import types

from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.plugins import base_plugin
from tensorboard_plugin_profile import profile_plugin
from tensorboard_plugin_profile.protobuf import (input_pipeline_pb2, overview_page_pb2, tf_data_stats_pb2,
                                                 tf_stats_pb2, trace_events_pb2)
from tensorflow.python.profiler.internal import _pywrap_profiler

folder, reports = map(pathlib.Path, sys.argv[1:])
faults = []


def expect(what, got, wanted):
    same = math.isclose(got, wanted, rel_tol=1e-6, abs_tol=1e-6) if isinstance(wanted, float) else got == wanted
    if not same:
        faults.append(f'{what}: {got!r}, expected {wanted!r}')


def ask(profile, tool):
    """What the plugin's tool says of the profile, as bytes."""
    paths = [str(path) for path in (folder / profile).glob('plugins/profile/*/*.xplane.pb')]
    expect(f'{profile}: files', len(paths), 1)
    raw, ok = _pywrap_profiler.xspace_to_tools_data(paths, tool)
    if not ok:
        faults.append(f'{profile}: {tool} failed: {raw!r}')
        return b''
    return raw


def check_runs():
    board = plugin_event_multiplexer.EventMultiplexer()
    board.AddRunsFromDirectory(str(folder))
    board.Reload()
    expect('runs of TensorBoard', sorted(board.Runs()), ['made', 'recorded'])
    plugin = profile_plugin.ProfilePlugin(base_plugin.TBContext(
        logdir=str(folder), data_provider=data_provider.MultiplexerDataProvider(board, str(folder)),
        flags=types.SimpleNamespace(master_tpu_unsecure_channel='')))
    runs = sorted(plugin.generate_runs())
    expect('runs of the plugin', [run.split('/')[0] for run in runs], ['made', 'recorded'])
    for run in runs:
        tools = {tool.rstrip('^') for tool in plugin.generate_tools_of_run(run)}
        expect(f'{run}: tools', {'overview_page', 'input_pipeline_analyzer', 'tensorflow_stats', 'trace_viewer@',
                                 'memory_profile'} - tools, set())


def step_rows(analysis):
    rows = []
    for packed in analysis.step_details:
        row = input_pipeline_pb2.PerGenericStepDetails()
        packed.Unpack(row)
        rows.append(row)
    return rows


def check_steps(profile, report):
    """Numbers, lengths and parts of steps. What runs around the ops the plugin does not count as computing."""
    overview = overview_page_pb2.OverviewPage.FromString(ask(profile, 'overview_page'))
    pipeline = input_pipeline_pb2.InputPipelineAnalysisResult.FromString(ask(profile, 'input_pipeline_analyzer'))
    for tool, analysis in ('overview', overview.input_analysis), ('input pipeline', pipeline):
        rows = step_rows(analysis)
        expect(f'{profile}, {tool}: steps', [row.step_name for row in rows],
               [f"{s['name']} {s['number']}" for s in report['steps']])
        for row, step in zip(rows, report['steps']):
            what = f"{profile}, {tool}, step {step['number']}"
            expect(f'{what}: time', row.step_time_ms, step['length_ns'] / 1e6)
            expect(f'{what}: input', row.host_wait_input_ms, step['input_ns'] / 1e6)
            expect(f'{what}: compute', row.host_compute_ms, step['compute_ns'] / 1e6)
            expect(f'{what}: the rest', row.unknown_time_ms, (step['host_ns'] + step['idle_ns']) / 1e6)
        summary = report['summaries'][0]['step']
        expect(f'{profile}, {tool}: mean', analysis.step_time_summary.average, sum(
            s['length_ns'] for s in report['steps']) / len(report['steps']) / 1e6)
        expect(f'{profile}, {tool}: least', analysis.step_time_summary.minimum, summary['min_ns'] / 1e6)
        expect(f'{profile}, {tool}: most', analysis.step_time_summary.maximum, summary['max_ns'] / 1e6)
    return overview, pipeline


def check_ops(profile, report):
    stats = tf_stats_pb2.TfStatsDatabase.FromString(ask(profile, 'tensorflow_stats')).without_idle.tf_stats_record
    theirs = {(r.op_name, r.op_type): r for r in stats if r.op_type not in ('Dataset', 'IteratorGetNext')}
    ours = collections.OrderedDict()
    for op in report['ops']:
        key = op['name'], op['type'] or ('Chain' if op['kind'] == 'chain' else op['name'])
        row = ours.setdefault(key, dict(op, calls=0, total_ns=0, self_ns=0))
        for field in 'calls', 'total_ns', 'self_ns':
            row[field] += op[field]
    expect(f'{profile}: ops', sorted(theirs), sorted(ours))
    for key in theirs.keys() & ours.keys():
        expect(f'{profile}, {key}: calls', theirs[key].occurrences, ours[key]['calls'])
        expect(f'{profile}, {key}: time', theirs[key].total_time_in_us, ours[key]['total_ns'] / 1e3)
        expect(f'{profile}, {key}: own time', theirs[key].total_self_time_in_us, ours[key]['self_ns'] / 1e3)
    order = [(r.op_name, r.op_type) for r in stats if (r.op_name, r.op_type) in theirs]
    expect(f'{profile}: top ops', order[:5], list(ours)[:5])


def check_trace(profile, report):
    trace = trace_events_pb2.Trace.FromString(ask(profile, 'trace_viewer'))
    threads = {key: resource.name for device in trace.devices.values() for key, resource in device.resources.items()}
    expect(f'{profile}: thread main', 'main' in threads.values(), True)
    steps = [e.name for e in trace.trace_events if 'step_num' in e.args]
    expect(f'{profile}, trace: steps', steps, [f"{s['name']} {s['number']}" for s in report['steps']])
    names = collections.Counter(e.name for e in trace.trace_events)
    op = next(op for op in report['ops'] if op['kind'] == 'node')
    expect(f"{profile}, trace: {op['name']}", names[f"{op['name']}:{op['type']}"], op['calls'])
    return trace


for profile in 'made', 'recorded':
    report = json.loads((reports / f'{profile}.json').read_text())
    overview, pipeline = check_steps(profile, report)
    check_ops(profile, report)
    trace = check_trace(profile, report)
    if profile == 'recorded':
        expect('recorded: steps', len(report['steps']), 7)
        expect('recorded: flops', any(op['flops'] > 0 for op in report['ops']), True)
        expect('recorded: peak', report['peak']['gflops_per_second'] > 0, True)
        continue
    expect('made: steps', len(report['steps']), 4)
    expect('made: advice', 'MODERATELY input-bound' in overview.recommendation.statement, True)
    product = next(e for e in trace.trace_events if e.name == 'dense/MatMul:MatMul')
    expect('made: shapes', product.args['shapes'], 'float32[50,784] float32[784,100] -> float32[50,100]')
    stages = {d.op_name: (d.count, round(d.time_in_ms, 6), round(d.self_time_in_ms, 6))
              for d in pipeline.input_op_details}
    expect('made: stages', stages, {'Iterator::Prefetch::Batch::Map': (4, 11.2, 11.2),
                                    'Iterator::Prefetch::Batch': (4, 12.0, 0.8),
                                    'Iterator::Prefetch': (4, 12.4, 0.4)})
    bottleneck = tf_data_stats_pb2.CombinedTfDataStats.FromString(ask('made', 'tf_data_bottleneck_analysis'))
    expect('made: bottleneck', [b.iterator_name for b in bottleneck.bottleneck_analysis], ['Map'])
    memory = json.loads(ask('made', 'memory_profile'))['memoryProfilePerAllocator']['cpu']
    expect('made: memory', int(memory['profileSummary']['peakStats']['peakBytesInUse']), 9_000_000)

check_runs()
for fault in faults:
    print('FAILED:', fault)
print('ok' if not faults else f'{len(faults)} faults')
sys.exit(bool(faults))
