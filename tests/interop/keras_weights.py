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

import models

L = tf.keras.layers


def functional_shared():
    return models.shared_layer('two_in')


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


KINDS = dict(sequential=models.sequential, functional_shared=functional_shared, subclassed=models.subclassed,
             compiled_fit=models.sequential, conv_bn=models.conv_bn, recurrent=models.recurrent, embedding=models.embedding,
             attention=models.attention, nested=models.nested, attributes=attributes)


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
