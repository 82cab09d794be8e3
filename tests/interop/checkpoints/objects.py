"""The objects of the cases, as TensorFlow has them; driver.cpp makes the same here. A case is a function that gives the
parts of a tf.train.Checkpoint and, for cases that train, the model, the optimizer and the inputs of a step."""
import pathlib
import sys
import types

import numpy as np
import tensorflow as tf

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from models import (attention, conv_bn, embedding, nested, recurrent, sequential, shared_layer,  # noqa: E402
                    subclassed)

K, O = tf.keras, tf.keras.optimizers


def values(shape, step):
    count = int(np.prod(shape))
    return ((np.arange(count) * 37 + 11 * step) % 101 / 101 - 0.5).astype('float32').reshape(shape)


def indices(shape, step):
    return ((np.arange(int(np.prod(shape))) * 5 + step) % 7).astype('int32').reshape(shape)


def training(model, optimizer, *shapes, make=values, more=None):
    def build():
        m, o = model(), optimizer()
        parts = {'model': m, 'optimizer': o, **(more() if more else {})}
        return types.SimpleNamespace(parts=parts, model=m, optimizer=o,
                                     inputs=lambda step: [make(shape, step) for shape in shapes])
    return build


def compiled():
    """The optimizer is a part of the model."""
    model = sequential()
    model.compile('adam', 'mse', metrics=['mae'])
    model.fit(values((8, 4), 0), values((8, 2), 1), batch_size=4, epochs=1, verbose=0, shuffle=False)
    return types.SimpleNamespace(parts={'model': model}, model=model, optimizer=model.optimizer,
                                 inputs=lambda step: [values((6, 4), step)])


def plain(make):
    return lambda: types.SimpleNamespace(parts=make(), model=None, optimizer=None)


class Bag(tf.Module):
    def __init__(self):
        super().__init__('bag')

        def v(*shape):
            return tf.Variable(values(shape, len(shape)))
        self.items = [v(2), v(4, 2), [v(1), {'deep': v(3)}]]
        self.named = {'b': v(2), 'a': v(1), 'with/slash': v(2), 'dot.name': v(1), '': v(1)}
        self.pair = (v(1), (v(2), v(3)))
        self.first = v(2, 2)
        self.second = self.first
        self.mixed = [1, v(1), 'text', None]
        self._private = v(1)
        self.with_underscore__ = v(1)


def containers():
    bag = Bag()
    return {'bag': bag, 'again': bag.items}


DTYPES = ['float16', 'bfloat16', 'float32', 'float64', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32',
          'uint64', 'bool', 'complex64', 'complex128']


def of_every_dtype():
    numbers = np.arange(6).reshape(2, 3) * 17 - 11
    parts = {name: tf.Variable(tf.cast(tf.cast(numbers, 'int64'), name)) for name in DTYPES}
    parts['special'] = tf.Variable(tf.constant([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38], 'float32'))
    parts['string'] = tf.Variable([[b'', b'\x00\xff'], [b'x' * 130, b'\xc3\xa9']])
    parts['scalar_string'] = tf.Variable('hello')
    parts['empty'] = tf.Variable(tf.zeros((0, 3)))
    parts['rank5'] = tf.Variable(values((1, 2, 2, 2, 4), 0))
    return parts


def tables():
    words = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    words.insert(tf.constant(['a', 'b', 'c']), tf.constant([1, 2, 3], tf.int64))
    vectors = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0., 0.])
    vectors.insert(tf.constant([7, 5], tf.int64), tf.constant([[3., 4.], [1., 2.]]))
    dense = tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, -1, empty_key='', deleted_key='$',
                                                  initial_num_buckets=8)
    dense.insert(tf.constant([f'key {i}' for i in range(10)]), tf.range(10, dtype=tf.int64))
    dense.remove(tf.constant(['key 3']))
    pairs = tf.lookup.experimental.DenseHashTable(tf.int32, tf.float32, [0., 0.], empty_key=[0, 0], deleted_key=[0, -1],
                                                  initial_num_buckets=4)
    pairs.insert(tf.constant([[1, 2], [2, 1], [-3, 4]]), tf.constant([[1., 2.], [3., 4.], [5., 6.]]))
    return {'words': words, 'vectors': vectors, 'dense': dense, 'pairs': pairs}


def generators():
    return {'g': tf.random.Generator.from_seed(5, alg='philox'),
            'h': tf.random.Generator.from_state([5, 2, 3], alg='philox')}


def metrics():
    M = K.metrics
    made = {'mean': M.Mean(), 'acc': M.SparseCategoricalAccuracy(), 'auc': M.AUC(num_thresholds=5),
            'meantensor': M.MeanTensor(), 'prec': M.Precision(), 'miou': M.MeanIoU(3)}
    made['mean'].update_state([1., 2., 5.])
    made['meantensor'].update_state([1., 2., 3.])
    made['acc'].update_state([0, 1, 1], [[.9, .1], [.2, .8], [.7, .3]])
    made['auc'].update_state([0, 1, 1, 0], [.1, .8, .4, .6])
    made['prec'].update_state([0, 1, 1], [.7, .8, .2])
    made['miou'].update_state([0, 1, 2], [0, 2, 2])
    return made


def nested_checkpoints():
    return {'a': tf.train.Checkpoint(v=tf.Variable(1.)), 'l': [tf.Variable(2.)], 'd': {'x': tf.Variable(3.)}}


def odd_names():
    odd = tf.Module()
    setattr(odd, 'a/b', tf.Variable(1.))
    setattr(odd, 'a.Sb', tf.Variable(2.))
    setattr(odd, 'c..d', tf.Variable(3.))
    return {'o': odd, 'p': odd}


def adam():
    return O.Adam(0.01)


def step_counter():
    return {'step': tf.Variable(0, dtype=tf.int64, name='step')}


CASES = {
    'model_sequential': training(sequential, adam, (6, 4), more=step_counter),
    'model_conv_bn': training(conv_bn, adam, (4, 6, 6, 2)),
    'model_embedding': training(embedding, adam, (3, 5), make=indices),
    'model_shared_layer': training(shared_layer, adam, (3, 3), (3, 3)),
    'model_attention': training(attention, adam, (2, 4, 6)),
    'model_nested': training(nested, adam, (6, 4)),
    'model_recurrent': training(recurrent, adam, (2, 4, 3)),
    'model_subclassed': training(subclassed, adam, (6, 4)),
    'model_compiled': compiled,
    **{'optimizer_' + name: training(sequential, make, (6, 4)) for name, make in {
        'sgd': lambda: O.SGD(0.1), 'sgd_momentum': lambda: O.SGD(0.1, momentum=0.8),
        'sgd_nesterov': lambda: O.SGD(0.1, momentum=0.9, nesterov=True),
        'adam': lambda: O.Adam(0.01), 'adam_amsgrad': lambda: O.Adam(0.01, amsgrad=True),
        'adam_ema_clip': lambda: O.Adam(0.01, use_ema=True, ema_momentum=0.9, global_clipnorm=0.5),
        'adam_schedule': lambda: O.Adam(O.schedules.ExponentialDecay(0.1, 2, 0.5)),
        'adamw': lambda: O.AdamW(0.01, weight_decay=0.02), 'adagrad': lambda: O.Adagrad(0.1),
        'rmsprop': lambda: O.RMSprop(0.01), 'rmsprop_centered': lambda: O.RMSprop(0.01, momentum=0.5, centered=True),
        'adadelta': lambda: O.Adadelta(0.5), 'adamax': lambda: O.Adamax(0.01), 'nadam': lambda: O.Nadam(0.01),
        'loss_scale': lambda: K.mixed_precision.LossScaleOptimizer(adam()),
        'lion': lambda: O.Lion(0.001), 'adafactor': lambda: O.Adafactor(0.01),
        'legacy_adam': lambda: O.legacy.Adam(0.01),
        'legacy_sgd': lambda: O.legacy.SGD(0.1, momentum=0.9),
        'legacy_rmsprop': lambda: O.legacy.RMSprop(0.01, momentum=0.5, centered=True),
        'ftrl': lambda: O.Ftrl(0.1, l1_regularization_strength=0.01)}.items()},
    'containers': plain(containers), 'dtypes': plain(of_every_dtype), 'tables': plain(tables),
    'generators': plain(generators), 'metrics': plain(metrics), 'nested_checkpoints': plain(nested_checkpoints),
    'odd_names': plain(odd_names),
}
