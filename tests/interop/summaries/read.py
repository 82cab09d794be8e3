"""usage: read.py FOLDER    what write.cpp wrote, as TensorBoard's own reader sees it"""
import io
import json
import sys
import wave

import numpy as np
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.compat.proto import graph_pb2
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.graph import graph_util
from tensorboard.plugins.hparams import metadata as hparams
from tensorboard.util import tensor_util
import tensorflow as tf

board = plugin_event_multiplexer.EventMultiplexer()
board.AddRunsFromDirectory(sys.argv[1])
board.Reload()
faults = []


def expect(what, got, wanted):
    same = np.array_equal(got, wanted) if isinstance(got, np.ndarray) else got == wanted
    if not same:
        faults.append(f'{what}: {got!r}, expected {wanted!r}')


def only(run, tag, plugin, step):
    events = board.Tensors(run, tag)
    expect(f'{tag}: steps', [e.step for e in events], [step])
    expect(f'{tag}: plugin', board.SummaryMetadata(run, tag).plugin_data.plugin_name, plugin)
    return tensor_util.make_ndarray(events[0].tensor_proto)


def content(run, tag):
    return board.SummaryMetadata(run, tag).plugin_data.content


expect('runs', sorted(board.Runs()), ['.', 'keras/train', 'run', 'v1'])
losses = board.Tensors('run', 'loss')
expect('loss: steps', [e.step for e in losses], list(range(100)))
expect('loss', [float(tensor_util.make_ndarray(e.tensor_proto)) for e in losses],
       [float(np.float32(1 / (i + 1))) for i in range(100)])
expect('description', board.SummaryMetadata('run', 'loss').summary_description, 'The *loss*')

width, height, *pictures = only('run', 'picture', 'images', 7)
expect('picture: size', (width, height, len(pictures)), (b'2', b'2', 2))
expect('picture', np.stack([tf.io.decode_png(p).numpy() for p in pictures]), np.arange(24).reshape(2, 2, 2, 3) * 10)

with wave.open(io.BytesIO(only('run', 'sound', 'audio', 8).reshape(-1)[0])) as sound:
    expect('sound', (sound.getframerate(), sound.getnframes(), sound.getnchannels()), (8000, 100, 1))
    samples = np.frombuffer(sound.readframes(100), '<i2') / 32767
    expect('sound: samples', bool(np.abs(samples - np.sin(np.arange(100) * 0.2)).max() < 1e-3), True)

expect('spread', only('run', 'spread', 'histograms', 9),
       [[0, 2, 2], [2, 4, 2], [4, 6, 0], [6, 8, 0], [8, 10, 1]])
expect('note', only('run', 'note', 'text', 10).tolist(), [[b'a', b'b'], [b'c', b'd']])
expect('pr', only('run', 'pr/pr_curves', 'pr_curves', 11),
       [[2, 1, 0], [2, 1, 0], [0, 1, 2], [0, 1, 2], [.5, .5, 0], [1, .5, 0]])
expect('traced', float(only('run', 'inside/traced', 'scalars', 12)), 3.0)

graph = tf.compat.v1.GraphDef.FromString(board.Graph('run').SerializeToString())
expect('graph: scope', [node.op for node in graph.node if node.name == 'inside/WriteSummary'], ['WriteSummary'])
expect('graph: mul', any(node.op == 'Mul' for node in graph.node), True)

trace = tf.compat.v1.RunMetadata.FromString(only('run', 'trace', 'graph_run_metadata', 13).item())
traced = [f.pre_optimization_graph for f in trace.function_graphs]
expect('trace: functions', len(traced), 2)
expect('trace: loops', [n.op for n in traced[1].node if 'While' in n.op], ['StatelessWhile'])
expect('trace: library', len(traced[1].library.function), 2)
product = {n.name: n for n in traced[1].node}['product/MatMul']
shape = product.attr['_output_shapes'].list.shape[0]
expect('trace: shapes', [d.size for d in shape.dim], [2, 2])
with tf.Graph().as_default():
    tf.import_graph_def(traced[1])  # TensorFlow takes it
shown = [graph_pb2.GraphDef.FromString(g.SerializeToString()) for g in traced]
merged = graph_util.merge_graph_defs(shown)  # as the dashboard shows it
expect('trace: merged', {n.name.split('/')[0] for n in merged.node}, {'graph_1', 'graph_2'})
expect('trace: as it ran', 'MatMul' in str(trace.function_graphs[1].post_optimization_graph), True)
stats = [s.node_name for d in trace.step_stats.dev_stats for s in d.node_stats]
expect('trace: times', any('MatMul' in name for name in stats), True)

start = hparams.parse_session_start_info_plugin_data(content('run', '_hparams_/session_start_info'))
expect('hparams', {k: getattr(v, v.WhichOneof('kind')) for k, v in start.hparams.items()},
       {'units': 8, 'rate': 0.25, 'optimizer': 'adam', 'flag': True})
expect('hparams: trial', (start.group_name, start.start_time_secs), ('trial', 2000))
end = hparams.parse_session_end_info_plugin_data(content('run', '_hparams_/session_end_info'))
expect('hparams: end', (end.status, end.end_time_secs), (1, 3000))
experiment = hparams.parse_experiment_plugin_data(content('.', '_hparams_/experiment'))
expect('experiment', [(i.name, [v.number_value for v in i.domain_discrete.values],
                       (i.domain_interval.min_value, i.domain_interval.max_value)) for i in experiment.hparam_infos],
       [('units', [4, 8], (0, 0)), ('rate', [], (0.1, 0.5))])
expect('experiment: metrics', [(m.name.tag, m.display_name) for m in experiment.metric_infos], [('loss', 'Loss')])
layout = layout_pb2.Layout.FromString(only('.', 'custom_scalars__config__', 'custom_scalars', 0).item())
expect('layout', [(c.title, [(h.title, list(h.multiline.tag)) for h in c.chart]) for c in layout.category],
       [('losses', [('both', ['loss', 'val_loss'])])])

# What a session of TensorFlow 1 gave to a FileWriter.
means = board.Tensors('v1', 'inner/mean_1')
expect('v1: mean', [(e.step, float(tensor_util.make_ndarray(e.tensor_proto))) for e in means], [(0, 1), (1, 2), (2, 3)])
expect('v1: mean: plugin', board.SummaryMetadata('v1', 'inner/mean_1').plugin_data.plugin_name, 'scalars')
spread = [tensor_util.make_ndarray(e.tensor_proto) for e in board.Tensors('v1', 'spread')]
expect('v1: spread', [float(h[:, 2].sum()) for h in spread], [3, 3, 3])
expect('v1: spread: edges', [(float(h[0, 0]), float(h[-1, 1])) for h in spread], [(0, 2), (1, 3), (1, 6)])
width, height, picture = tensor_util.make_ndarray(board.Tensors('v1', 'picture/image')[0].tensor_proto)
expect('v1: picture', (width, height), (b'2', b'2'))
expect('v1: pixels', tf.io.decode_png(picture).numpy(), np.arange(12).reshape(2, 2, 3))
with wave.open(io.BytesIO(tensor_util.make_ndarray(board.Tensors('v1', 'sound/audio')[0].tensor_proto).flat[0])) as sound:
    expect('v1: sound', (sound.getframerate(), sound.getnframes(), sound.getnchannels()), (8000, 20, 1))
expect('v1: note', [tensor_util.make_ndarray(e.tensor_proto).item() for e in board.Tensors('v1', 'note')], [b'hello'] * 3)
expect('v1: note: plugin', board.SummaryMetadata('v1', 'note').plugin_data.plugin_name, 'text')
expect('v1: tensor', board.SummaryMetadata('v1', 'tensor').summary_description, 'A *tensor*')
expect('v1: by hand', [(e.step, float(tensor_util.make_ndarray(e.tensor_proto))) for e in board.Tensors('v1', 'by_hand')],
       [(4, 4.5)])
graph = tf.compat.v1.GraphDef.FromString(board.Graph('v1').SerializeToString())
expect('v1: graph', [node.op for node in graph.node if node.name in ('inner/mean_1', 'Merge/MergeSummary')],
       ['ScalarSummary', 'MergeSummary'])
with tf.Graph().as_default():
    tf.import_graph_def(graph)  # TensorFlow takes it
meta = tf.compat.v1.MetaGraphDef.FromString(board.MetaGraph('v1').SerializeToString())
expect('v1: collection', meta.collection_def['summaries'].node_list.value[0], 'inner/mean_1:0')

# The TensorBoard callback.
noted = board.Tensors('keras/train', 'model/noted/mean')
expect('keras: layer', [(e.step, float(tensor_util.make_ndarray(e.tensor_proto))) for e in noted], [(0, 1), (1, 1)])
expect('keras: batches', [e.step for e in board.Tensors('keras/train', 'batch_loss')], [1, 2])
expect('keras: epochs', [e.step for e in board.Tensors('keras/train', 'epoch_loss')], [0])
described = json.loads(only('keras/train', 'keras', 'graph_keras_model', 0).item())
expect('keras: model', [layer['config']['name'] for layer in described['config']['layers']][-2:], ['noted', 'dense'])
expect('keras: weights', [e.step for e in board.Tensors('keras/train', 'dense/kernel_0/histogram')], [0])
step = tf.compat.v1.GraphDef.FromString(board.Graph('keras/train').SerializeToString())
names = [node.name for node in step.node]
for scope in ('model/dense/MatMul', 'mean_squared_error/', 'SGD/'):
    expect(f'keras: graph: {scope}', any(name.startswith(scope) for name in names), True)
with tf.Graph().as_default():
    tf.import_graph_def(step)

for fault in faults:
    print('FAILED:', fault)
print('ok' if not faults else f'{len(faults)} faults')
sys.exit(bool(faults))
