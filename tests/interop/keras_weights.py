#!/usr/bin/env python3
"""usage: keras_weights.py DRIVER    Keras 2.15 loads the weights that DRIVER writes, and predicts the same

In every format, into models that are not compiled, and the files of .weights.h5 and checkpoints into compiled ones too,
with the state of the optimizer.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import tensorflow as tf

L = tf.keras.layers
UNITS = 4


def sequential():
    return tf.keras.Sequential([L.Input((4,)), L.Dense(UNITS, activation='relu', name='first'), L.Dense(2, name='second')])


def functional_shared():
    a, b = tf.keras.Input((3,), name='left'), tf.keras.Input((3,), name='right')
    shared = L.Dense(UNITS, activation='tanh', name='shared')
    x = L.Concatenate(name='join')([shared(a), shared(b)])
    outputs = [L.Dense(2, name='main')(x), L.Dense(1, activation='sigmoid', name='aux')(x)]
    return tf.keras.Model([a, b], outputs, name='two_in')


class Subclassed(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [L.Dense(UNITS, activation='relu'), L.Dense(UNITS)]
        self.heads = {'a': L.Dense(1), 'b': L.Dense(2)}
        self.scale = tf.Variable(1.5, name='scale')

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return tf.concat([self.heads['a'](x), self.heads['b'](x)], -1) * self.scale


def subclassed():
    model = Subclassed()
    model(tf.zeros((1, 4)))
    return model


def conv_bn():
    return tf.keras.Sequential([L.Input((6, 6, 2)), L.Conv2D(UNITS, 3, padding='same', activation='relu'),
                                L.BatchNormalization(), L.MaxPool2D(), L.Flatten(), L.Dense(3, activation='softmax')])


def recurrent():
    i = tf.keras.Input((4, 3))
    x = L.Bidirectional(L.LSTM(UNITS, return_sequences=True))(i)
    x = L.GRU(UNITS, return_sequences=True)(x)
    return tf.keras.Model(i, L.RNN(L.StackedRNNCells([L.LSTMCell(2), L.GRUCell(3)]))(x))


def embedding():
    return tf.keras.Sequential([L.Input((5,), dtype='int32'), L.Embedding(7, UNITS, mask_zero=True),
                                L.GlobalAveragePooling1D(), L.Dense(1)])


def attention():
    i = tf.keras.Input((4, 6))
    x = L.MultiHeadAttention(2, UNITS, name='mha')(i, i)
    return tf.keras.Model(i, L.Dense(2)(L.LayerNormalization(name='ln')(L.Add()([i, x]))))


def nested():
    inner = tf.keras.Sequential([L.Input((4,)), L.Dense(UNITS), L.Dense(3)], name='inner')
    i = tf.keras.Input((4,))
    deep = tf.keras.Sequential([inner, L.Dense(2)], name='middle')
    return tf.keras.Model(i, L.Dense(1, name='outer_dense')(deep(i)), name='outer')


class Block(L.Layer):
    def __init__(self):
        super().__init__()
        self.inner = L.Dense(4)
        self.zeta = L.Dense(4)

    def call(self, x):
        return self.zeta(self.inner(x))


class Attributes(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.alpha = L.Dense(4)
        self.timed = L.TimeDistributed(L.Dense(4))
        self.output_block = Block()
        self.stack = [Block(), Block()]

    def call(self, x):
        y = self.output_block(self.alpha(x))
        for block in self.stack:
            y = block(y)
        return self.timed(tf.expand_dims(y, 1))


def attributes():
    model = Attributes()
    model(tf.zeros((1, 4)))
    return model


KINDS = dict(sequential=sequential, functional_shared=functional_shared, subclassed=subclassed, compiled_fit=sequential,
             conv_bn=conv_bn, recurrent=recurrent, embedding=embedding, attention=attention, nested=nested, attributes=attributes)


def arrays(data, letter):
    found = [data[name] for name in sorted(data) if name.startswith(letter)]
    return found if len(found) > 1 else found[0]


def difference(model, data):
    got = tf.nest.flatten(model(arrays(data, 'x'), training=False))
    return max(float(np.max(np.abs(g.numpy() - w))) for g, w in zip(got, tf.nest.flatten(arrays(data, 'y'))))


def fresh(make):
    tf.keras.backend.clear_session()
    return make()


def trained(make, data):
    """Compiled and trained for a step, so that the optimizer has its variables."""
    model = fresh(make)
    model.compile('adam', 'mse', metrics=['mae'])
    x = arrays(data, 'x')
    model.fit(x, tf.nest.map_structure(np.zeros_like, arrays(data, 'y')), epochs=1, verbose=0)
    return model


faults = 0
with tempfile.TemporaryDirectory() as made:
    folder = pathlib.Path(made)
    subprocess.run([sys.argv[1], str(folder)], check=True)
    for kind, make in KINDS.items():
        place = folder / kind
        data = dict(np.load(place / 'data.npz'))
        cases = [('legacy.h5', fresh), ('new.weights.h5', fresh), ('tf', fresh)]
        if kind != 'sequential':  # which was never trained
            cases += [('new.weights.h5', lambda make: trained(make, data)), ('tf', lambda make: trained(make, data))]
        for name, build in cases:
            try:
                model = build(make)
                status = model.load_weights(str(place / name))
                if status is not None:
                    status.assert_existing_objects_matched().expect_partial()
                off = difference(model, data)
                assert off < 1e-5, f'predictions differ by {off}'
                if build is not fresh:
                    steps = int(model.optimizer.iterations)
                    assert steps == 6, f'the optimizer is at step {steps}'
                    moments = [float(np.abs(v.numpy()).sum()) for v in model.optimizer.variables[1:]]
                    assert any(moments), 'the moments of the optimizer are zero'
            except Exception as e:  # pylint: disable=broad-except
                faults += 1
                print(f'{kind}/{name} into a {"fresh" if build is fresh else "trained"} model: {type(e).__name__}: {e}')
    print(f'{len(KINDS)} models, {faults} faults')
sys.exit(1 if faults else 0)
