#!/usr/bin/env python3
"""usage: judge.py DRIVER WORK    TensorFlow goes on from the checkpoints that we write, and we from its own.

DRIVER (driver.cpp) trains every case for three steps, saves it as ours-1 and goes on for ten steps more. Here the same
objects are restored from ours-1: everything must be used, keys, dtypes, shapes and object graph must be those that
TensorFlow itself writes, and ten steps must give the same losses. Then the other way round: TensorFlow writes theirs-1,
the driver restores it, writes it again (values must be the same bits), and goes on.
"""
import json
import os
import subprocess
import sys

os.environ.update(CUDA_VISIBLE_DEVICES='', TF_CPP_MIN_LOG_LEVEL='3', TF_ENABLE_ONEDNN_OPTS='0')
sys.dont_write_bytecode = True
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.protobuf import trackable_object_graph_pb2  # noqa: E402

import objects  # noqa: E402

DRIVER, WORK = sys.argv[1:3]
GRAPH = '_CHECKPOINTABLE_OBJECT_GRAPH'
BEFORE, AFTER = 3, 10
TOLERANCE = 1e-5  # of losses, and of the first one: both engines compute in float32, and losses come near to zero
faults = []


def fault(case, what):
    faults.append(f'{case}: {what}')


def path(case, name):
    return os.path.join(WORK, case, name)


def drive(what):
    done = subprocess.run([DRIVER, what, WORK], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f'{DRIVER} {what} ended with {done.returncode}')
    return {line['case']: line for line in map(json.loads, done.stdout.splitlines())}


def train(made, begin, steps):
    losses = []
    for step in range(begin, begin + steps):
        inputs = [tf.constant(x) for x in made.inputs(step)]
        with tf.GradientTape() as tape:
            outputs = made.model(inputs[0] if len(inputs) == 1 else inputs, training=True)
            loss = tf.add_n([tf.reduce_mean(tf.square(y - 0.3)) for y in tf.nest.flatten(outputs)])
        made.optimizer.minimize(loss, made.model.trainable_variables, tape=tape)
        losses.append(float(loss))
    return losses


def build(case):
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(7)
    return objects.CASES[case]()


def content(prefix):
    """Every value but the object graph, by its key. Hash tables have their rows in any order: here they are sorted. The
    buckets of dense ones have their places."""
    reader = tf.train.load_checkpoint(prefix)
    values = {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map() if key != GRAPH}
    for key in [key for key in values if key.endswith('-keys') and values[key].ndim == 1]:
        order = np.argsort(values[key])
        for each in (key, key.removesuffix('keys') + 'values'):
            values[each] = values[each][order]
    return values


def graph(prefix):
    """The nodes in the order of the names of edges: the numbers that they have in the file do not count."""
    message = trackable_object_graph_pb2.TrackableObjectGraph()
    message.ParseFromString(tf.train.load_checkpoint(prefix).get_tensor(GRAPH))
    order = [0]
    for at in order:
        node = message.nodes[at]
        parts = [c.node_id for c in sorted(node.children, key=lambda c: c.local_name)]
        order += [part for part in dict.fromkeys(parts) if part not in order]
    for node in message.nodes:
        order += [s.slot_variable_node_id for s in node.slot_variables if s.slot_variable_node_id not in order]
    place = {node: number for number, node in enumerate(order)}
    return [(sorted((c.local_name, place[c.node_id]) for c in node.children),
             [(a.name, a.full_name, a.checkpoint_key) for a in node.attributes],
             sorted((s.slot_name, place[s.original_variable_node_id],
                     message.nodes[s.slot_variable_node_id].attributes[0].checkpoint_key) for s in node.slot_variables),
             node.has_checkpoint_values.value) for node in (message.nodes[number] for number in order)]


def kinds(values):
    return {key: (str(value.dtype), value.shape) if isinstance(value, np.ndarray) else type(value).__name__
            for key, value in values.items()}


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return (a == b).all() if a.dtype == object else a.tobytes() == b.tobytes()


def compare_losses(case, what, got, wanted):
    if len(got) != AFTER or not np.allclose(got, wanted, rtol=TOLERANCE, atol=TOLERANCE * wanted[0]):
        fault(case, f'{what}: losses {got}, TensorFlow has {wanted}')


def trackable_values(made):
    """The values that objects have, by key."""
    return content(tf.train.Checkpoint(**made.parts).write(path('now', 'now')))


def load_ours(case, line):
    made = build(case)
    if made.optimizer is not None:
        slots = getattr(made.optimizer, '_create_all_weights', None) or made.optimizer.build  # the first of old ones
        slots(made.model.trainable_variables)
    checkpoint = tf.train.Checkpoint(**made.parts)
    try:
        checkpoint.restore(path(case, 'ours-1')).assert_consumed()
    except Exception as error:  # pylint: disable=broad-except
        return fault(case, f'TensorFlow does not restore ours: {error}')
    stored, held = content(path(case, 'ours-1')), trackable_values(made)
    for key in stored:
        if not key.startswith('save_counter/') and not (key in held and same_bits(stored[key], held[key])):
            fault(case, f'{key} of ours is {stored[key]!r}, restored {held.get(key)!r}')
    if made.model is not None:
        if hasattr(made.optimizer, '_u_product_counter'):  # Keras's Nadam counts steps in Python, too, and forgets it
            made.optimizer._u_product_counter = int(made.optimizer.iterations) + 1
        compare_losses(case, 'on from ours', line['losses'], train(made, BEFORE, AFTER))
    return None


def write_theirs(case):
    made = build(case)
    if made.model is not None:
        train(made, 0, BEFORE)
    tf.train.Checkpoint(**made.parts).save(path(case, 'theirs'))
    theirs, ours = path(case, 'theirs-1'), path(case, 'ours-1')
    if kinds(content(ours)) != kinds(content(theirs)):
        fault(case, f'ours has {kinds(content(ours))}, theirs {kinds(content(theirs))}')
    if graph(ours) != graph(theirs):
        pairs = [f'{i}: ours {a}, theirs {b}' for i, (a, b) in enumerate(zip(graph(ours), graph(theirs))) if a != b]
        fault(case, f'the object graphs differ, {len(graph(ours))} and {len(graph(theirs))} nodes: {pairs[:2]}')
    if case == 'tables':
        mine, its = content(ours), content(theirs)
        for key in its:
            if not same_bits(mine[key], its[key]):
                fault(case, f'{key} of ours is {mine[key]!r}, of theirs {its[key]!r}')
    return train(made, BEFORE, AFTER) if made.model is not None else None


class SavedSession:
    """The graph of the case v1_saver; its values are in a session."""

    def __init__(self):
        v1 = tf.compat.v1
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.variables = {'layer/w': v1.get_variable('layer/w', (4, 2)),
                              'step': v1.get_variable('step', initializer=tf.constant(5, tf.int64)),
                              'parts': v1.get_variable('parts', (6, 2), partitioner=v1.fixed_size_partitioner(3))}
            self.values = {name: tf.convert_to_tensor(v) for name, v in self.variables.items()}
            self.start = v1.global_variables_initializer()
            self.saver = v1.train.Saver()
        self.session = v1.Session(graph=self.graph)


def check_session():
    made = SavedSession()
    with made.graph.as_default():  # outside of a graph the Saver would look for eager variables
        try:
            made.saver.restore(made.session, path('v1_saver', 'ours-1'))
            held, stored = made.session.run(made.values), content(path('v1_saver', 'ours-1'))
            if set(held) != set(stored) or not all(same_bits(held[key], stored[key]) for key in held):
                fault('v1_saver', f'TensorFlow restores {held} of {stored}')
        except Exception as error:  # pylint: disable=broad-except
            fault('v1_saver', f'TensorFlow does not restore ours: {error}')
        made.session.run(made.start)
        made.saver.save(made.session, path('v1_saver', 'theirs'), global_step=1, write_meta_graph=False)


def check_managers():
    """A folder that our manager and TensorFlow's look after in turn."""

    def expect(what, got, wanted):
        if got != wanted:
            fault('manager', f'{what}: {got}, not {wanted}')

    def names(prefixes):
        return [os.path.basename(prefix) for prefix in prefixes]

    folder = os.path.join(WORK, 'manager')
    expect('of a new folder we restore', drive('manage')['manager'].get('restored'), [0, 0])
    v = tf.Variable(0.)
    checkpoint = tf.train.Checkpoint(v=v)
    manager = tf.train.CheckpointManager(checkpoint, folder, 3)
    expect('TensorFlow takes over', names(manager.checkpoints), ['ckpt-2', 'ckpt-3', 'ckpt-4'])
    checkpoint.restore(manager.latest_checkpoint).assert_consumed()
    expect('it restores', [v.numpy(), int(checkpoint.save_counter)], [4, 4])
    v.assign_add(10.)
    expect('it saves', names([manager.save()]), ['ckpt-5'])
    expect('we restore', drive('manage')['manager'].get('restored'), [14, 5])
    left = {name.split('.')[0] for name in os.listdir(folder)}
    expect('there is left', sorted(left), ['checkpoint', 'ckpt-7', 'ckpt-8', 'ckpt-9'])


def check_back(case, line, losses):
    if line.get('error'):
        return fault(case, f"theirs is not restored: {line['error']}")
    theirs, back = content(path(case, 'theirs-1')), content(path(case, 'back'))
    for key in sorted(set(theirs) | set(back)):
        if key not in theirs or key not in back or not same_bits(theirs[key], back[key]):
            fault(case, f'{key} of theirs is {theirs.get(key)!r}, written again {back.get(key)!r}')
    if losses is not None:
        compare_losses(case, 'on from theirs', line['losses'], losses)
        compare_losses(case, 'on from theirs, restored before the slots were there', line['delayed'], losses)
    return None


def main():
    os.makedirs(WORK, exist_ok=True)
    ours = drive('write')
    if set(ours) != {*objects.CASES, 'v1_saver'}:
        sys.exit(f'the driver has other cases: {sorted(set(ours) ^ set(objects.CASES))}')
    losses = {}
    for case, line in ours.items():
        if case == 'v1_saver':
            check_session()
            losses[case] = None
            continue
        load_ours(case, line)
        losses[case] = write_theirs(case)
    for case, line in drive('read').items():
        check_back(case, line, losses[case])
    check_managers()
    for each in faults:
        print('FAILED', each)
    print(f'{len(ours) + 1} cases, {len(faults)} failures')
    return 1 if faults else 0


sys.exit(main())
